"""Units whose clock stands still while nothing in them can change, for simulators that compile a design to a program.

Such a program computes all logic behind a clock edge, idle or not. With this, a unit sleeps in a cycle if another edge
would leave all of its registers and memories as they are: at the last edge none of them changed, and its inputs are
what they were then. Only inputs that the unit does not heed are another matter: the payload of a stream that is not
valid, for example. A sleeping unit, and one that is awake, has the old value instead.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

from amaranth.hdl import ClockDomain, ClockSignal, Const, Fragment, Instance, Mux, ResetSignal, Signal, Value
from amaranth.hdl._ast import SignalDict, SignalSet
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import DomainRenamer, FragmentTransformer, StatementTransformer, ValueTransformer
from amaranth.lib import wiring

__all__ = ["let_sleep", "register_reset"]


def let_sleep(fragment: Fragment) -> None:
    """Let the outermost submodules sleep whose attribute ``sleeps`` is true; ``fragment`` is changed.

    Inputs that such a component does not heed in some cycles are those of its streams, and those of its property
    ``heeded``, a list of pairs: the input and the condition under which it matters.

    Raises
    ------
    ValueError
        A module has an instance, whose registers are unknown.
    """
    for index, (unit, name, location) in enumerate(fragment.subfragments):
        if any(getattr(origin, "sleeps", False) for origin in unit.origins or ()):
            fragment.subfragments[index] = _sleeping(unit, name), name, location
        else:
            let_sleep(unit)


def register_reset(fragment: Fragment) -> Fragment:
    """``fragment`` with a register for the reset on its way in; one that defines its domains is returned as it is.

    Verilator computes logic that depends on an input of the design twice in each cycle, and all registers with a reset
    depend on it.
    """
    if "sync" in fragment.domains:
        return fragment
    inner = ClockDomain("registered_reset", local=True)
    renamed = DomainRenamer({"sync": inner.name})(fragment)
    reset = Signal(name="registered_reset", reset_less=True)
    renamed.add_domains(inner)
    renamed.add_statements("sync", reset.eq(ResetSignal("sync")))
    renamed.add_statements("comb", inner.clk.eq(ClockSignal("sync")), inner.rst.eq(reset))
    return renamed


def _sleeping(unit: Fragment, name: str) -> Fragment:
    (domain,) = _domains(unit)
    heeded = _heeded(unit)
    inputs = _inputs(unit)
    held = SignalDict((port, Signal.like(port, name=f"held_{port.name}")) for port in inputs if port in heeded)
    awake = ClockDomain(f"{name}_awake", local=True)
    falling = ClockDomain(f"{name}_falling", clk_edge="neg", local=True, reset_less=True)
    unit = DomainRenamer({domain: awake.name})(_Replacement(held)(unit))
    # Of the unit itself: what is added below has its own comparisons.
    registers, writes = _registers(unit, awake.name), _writes(unit)
    runs = Signal(name="sleep_runs", reset_less=True)
    changed = Signal(name="sleep_changed", init=1, reset_less=True)
    written = Signal(name="sleep_written", init=1, reset_less=True)
    inputs_differ, registers_differ, writes_differ = (
        Signal(name=f"sleep_{name}_differ") for name in ("inputs", "registers", "writes")
    )

    def differences(values: list[Value], kind: str) -> Iterator[Value]:
        for number, value in enumerate(values):
            last = Signal(len(value), name=f"last_{kind}_{number}", reset_less=True)
            if isinstance(value, Signal) and value in held:
                unit.add_statements("comb", held[value].eq(Mux(heeded[value], value.as_unsigned(), last)))
                value = held[value]
            unit.add_statements(awake.name, last.eq(value))
            yield last != value.as_unsigned()

    unit.add_domains(awake, falling)
    unit.add_statements(
        "comb",
        inputs_differ.eq(_any(list(differences([*inputs, ResetSignal(domain)], "input")))),
        registers_differ.eq(_any(list(differences(registers, "register")))),
        writes_differ.eq(_any(list(differences(writes, "write")))),
        falling.clk.eq(ClockSignal(domain)),
        # `runs` is stable while the clock is high.
        awake.clk.eq(ClockSignal(domain) & runs),
        awake.rst.eq(ResetSignal(domain)),
    )
    unit.add_statements(falling.name, runs.eq(inputs_differ | changed))
    # Compared at edges that the unit is awake for, because all that happens in other cycles costs time. So an edge
    # tells what the one before it has changed: registers have other values since then; memories have if it wrote
    # something else than the edge before it.
    unit.add_statements(
        awake.name,
        changed.eq(inputs_differ | registers_differ | written),
        written.eq(writes_differ),
    )
    return unit


class _Replacement(FragmentTransformer, ValueTransformer, StatementTransformer):
    """Signals in place of others."""

    def __init__(self, signals: SignalDict) -> None:
        self._signals = signals

    def on_Signal(self, value: Signal) -> Signal:
        return self._signals.get(value, value)


def _heeded(unit: Fragment) -> SignalDict:
    """For each input that matters only in some cycles the condition."""
    heeded = SignalDict()
    for component in unit.origins or ():
        if not isinstance(component, wiring.Component):
            continue
        ports = {path: Value.cast(value) for path, _, value in component.signature.flatten(component)}
        for path, port in ports.items():
            valid = ports.get((*path[:-1], "valid"))
            if path[-1] in ("payload", "ready") and isinstance(valid, Signal) and isinstance(port, Signal):
                heeded[port] = valid
        for port, condition in getattr(component, "heeded", ()):
            heeded[Value.cast(port)] = condition
    return heeded


def _domains(unit: Fragment) -> set[str]:
    ports = [
        port
        for fragment in _tree(unit)
        if isinstance(fragment, MemoryInstance)
        for port in (*fragment._read_ports, *fragment._write_ports)
    ]
    return (
        {domain for fragment in _tree(unit) for domain in fragment.statements} | {port._domain for port in ports}
    ) - {"comb"}


def _inputs(unit: Fragment) -> list[Signal]:
    used, driven = SignalSet(), SignalSet()
    for fragment in _tree(unit):
        if isinstance(fragment, MemoryInstance):
            for port in fragment._read_ports:
                used |= port._addr._rhs_signals() | port._en._rhs_signals()
                driven |= port._data._lhs_signals()
            for port in fragment._write_ports:
                used |= port._addr._rhs_signals() | port._data._rhs_signals() | port._en._rhs_signals()
        elif isinstance(fragment, Instance):
            raise ValueError(f"a unit with an instance of {fragment.type} cannot sleep")
        for statements in fragment.statements.values():
            used |= statements._rhs_signals()
            driven |= statements._lhs_signals()
    return [signal for signal in used if signal not in driven]


def _registers(unit: Fragment, domain: str) -> list[Value]:
    """All registers, those of synchronous read ports among them."""
    registers = SignalSet()
    for fragment in _tree(unit):
        if domain in fragment.statements:
            registers |= fragment.statements[domain]._lhs_signals()
    memories = (fragment for fragment in _tree(unit) if isinstance(fragment, MemoryInstance))
    return [*registers, *(port._data for memory in memories for port in memory._read_ports if port._domain == domain)]


def _writes(unit: Fragment) -> list[Value]:
    """What is written to memories: the same once more changes nothing."""
    memories = (fragment for fragment in _tree(unit) if isinstance(fragment, MemoryInstance))
    ports = (port for memory in memories for port in memory._write_ports)
    return [value for port in ports for value in (port._en, port._addr, port._data)]


def _tree(fragment: Fragment) -> Iterator[Fragment]:
    yield fragment
    for child, _, _ in fragment.subfragments:
        yield from _tree(child)


def _any(conditions: list[Value]) -> Value:
    """The conditions' disjunction as a balanced tree, because tools do not like deep expressions."""
    conditions = conditions or [Const(0)]
    while len(conditions) > 1:
        conditions = [functools.reduce(operator.or_, conditions[i : i + 8]) for i in range(0, len(conditions), 8)]
    return conditions[0]
