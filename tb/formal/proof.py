"""Base class of all proofs: a unit with free inputs, assumptions about these, and claims about its outputs."""

from __future__ import annotations

import abc
from collections.abc import Callable
from itertools import count

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, ClockDomain, Const, Cover, Fragment, MemoryInstance, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from openmxu.rtl.fpga.target import Target
from tb.cells import OnTarget

__all__ = ["Proof"]


class Proof(abc.ABC):
    """A unit and the claims that are proved about it.

    Without a ``bound``, claims are proved by induction: they hold after any number of cycles, for all inputs that the
    assumptions allow. With one, they are proved for the first ``bound`` cycles after reset.

    Attributes
    ----------
    name
        Name of the unit, with its parameters.
    unit
        The unit of the last :meth:`module`.
    claims
        The claims, in words.
    depth
        Depth of the induction: claims that have held for so many cycles hold in the next one, from any state.
    bound, reason
        See above; and why the bound is sufficient, or the best that is feasible.
    cover_depth
        Number of cycles within which every condition given to :meth:`reach` must be reachable.
    target
        Target for which the unit is elaborated, with models of the target's blocks.
    takes_minutes
        Whether the solver needs too long for the quick tests.
    cuts
        Paths of submodules that are removed: what they drive has any value in any cycle.
    has_lemmas
        Whether lemmas are claimed as well; a search for a violation of the claims goes without.
    """

    depth = 2
    bound: int | None = None
    reason: str | None = None
    cover_depth = 20
    target: Target | None = None
    takes_minutes = False
    cuts: tuple[str, ...] = ()
    has_lemmas = True

    def __init__(self, make_unit: Callable[[], wiring.Component], name: str) -> None:
        self._make_unit = make_unit
        self.name = name
        self.claims: list[str] = []
        self._free: list[Signal] = []
        self._watched = 0
        self._signals: dict[str, Signal] = {}
        self._memories: dict[str, MemoryInstance] = {}

    @abc.abstractmethod
    def state(self, m: Module) -> None:
        """Make the assumptions and claims, in terms of ``self.unit``."""

    def module(self, platform: object) -> Module:
        """A new unit with all assumptions and claims."""
        m = Module()
        self._free.clear()
        self._watched = 0
        self.unit = self._make_unit()
        self.make_clock(m)
        fragment = self.elaborated(platform)
        self._signals = _driven_signals(fragment, "")
        self._memories = _memories(fragment, "")
        for path in self.cuts:
            self._free += _cut(fragment, path)
        m.submodules.unit = fragment
        self.state(m)
        return m

    def make_clock(self, m: Module) -> None:
        """Make the clock domain ``sync`` of unit and claims. There is no reset signal: proofs begin in the reset state,
        or in any state for induction. Override this for units that make the domain themselves."""
        m.domains.sync = domain = ClockDomain("sync", reset_less=True)
        self._free.append(domain.clk)

    def elaborated(self, platform: object) -> Fragment:
        """The unit, elaborated."""
        return Fragment.get(self.unit if self.target is None else OnTarget(self.unit, self.target), platform)

    @property
    def ports(self) -> list[Signal]:
        """The clock and all signals of the last :meth:`module` that may have any value in any cycle."""
        members = self.unit.signature.flatten(self.unit)
        inputs = (Value.cast(value) for _, member, value in members if member.flow is In)
        return [*(value for value in inputs if isinstance(value, Signal)), *self._free]

    def inside(self, name: str) -> Signal:
        """A register or wire of the unit; ``name`` is its path of submodules and signal, joined by dots."""
        return self._signals[name]

    def stored(self, name: str, address: Value, width: int) -> Signal:
        """A word of a memory of the unit; ``name`` is the path of submodules to it."""
        word = Signal(width)
        self._memories[name].read_port(domain="comb", addr=address, data=word, en=Const(1), transparent_for=())
        return word

    def is_in(self, state: str, fsm: str = "fsm_state") -> Value:
        """Whether a state machine of the unit is in a state; raises ``KeyError`` if there is no such state machine."""
        signal = self.inside(fsm)
        return signal == next(number for number in count() if signal.decoder(number) == f"{state}/{number}")

    def free(self, name: str, width: int = 1) -> Signal:
        """An additional input, which may have any value in any cycle."""
        signal = Signal(width, name=name)
        self._free.append(signal)
        return signal

    def any(self, m: Module, name: str, width: int) -> Signal:
        """An arbitrary value that is constant over all cycles."""
        signal = Signal(width, name=name)
        m.d.comb += signal.eq(AnyConst(width))
        return signal

    def claim(self, m: Module, text: str, condition: Value) -> None:
        """Claim that a condition holds in every cycle in which this statement is active."""
        if text not in self.claims:
            self.claims.append(text)
        statement = Assert(condition)
        statement.src_loc = (text, 0)  # the tools print it when the claim is violated, and know no other name
        m.d.comb += statement

    def lemma(self, m: Module, condition: Value) -> None:
        """Claim an invariant of the unit's registers that other claims need for their induction."""
        if self.has_lemmas:
            m.d.comb += Assert(condition, src_loc_at=1)

    def assume(self, m: Module, condition: Value) -> None:
        """Restrict the proof to inputs for which a condition holds."""
        m.d.comb += Assume(condition)

    def reach(self, m: Module, condition: Value) -> None:
        """Require that a condition is reachable, because otherwise claims could hold vacuously."""
        m.d.comb += Cover(condition, src_loc_at=1)

    def kept(self, m: Module, interface: stream.Interface, released: Value | int = 0) -> Value:
        """Whether a payload offered but not transferred is still offered, unless ``released`` one cycle before."""
        payload = Value.cast(interface.payload)
        waited = Signal(name=f"waited_{self._watched}")
        offered = Signal(payload.shape(), name=f"offered_{self._watched}")
        self._watched += 1
        m.d.sync += [waited.eq(interface.valid & ~interface.ready & ~Value.cast(released)), offered.eq(payload)]
        return ~waited | (interface.valid & (payload == offered))


def _driven_signals(fragment: Fragment, prefix: str) -> dict[str, Signal]:
    """All signals driven by a fragment or its subfragments, by path."""
    signals = {f"{prefix}{signal.name}": signal for signal in _driven_here(fragment)}
    for inner, name, _ in fragment.subfragments:
        signals |= _driven_signals(inner, f"{prefix}{name}.")
    return signals


def _driven_here(fragment: Fragment) -> list[Signal]:
    """All signals driven by a fragment, but not by its subfragments."""
    statements = (statement for statements in fragment.statements.values() for statement in statements)
    driven = (signal for statement in statements for signal in statement._lhs_signals())
    return list({id(signal): signal for signal in driven if isinstance(signal, Signal) and signal.name}.values())


def _cut(fragment: Fragment, path: str) -> list[Signal]:
    """Replace a subfragment by an empty one; returns the signals that it drove itself."""
    name, _, rest = path.partition(".")
    for place, (inner, inner_name, location) in enumerate(fragment.subfragments):
        if inner_name == name:
            if rest:
                return _cut(inner, rest)
            fragment.subfragments[place] = (Fragment(), name, location)
            return _driven_here(inner)
    raise KeyError(f"no submodule {name}")


def _memories(fragment: Fragment, prefix: str) -> dict[str, MemoryInstance]:
    """All memories of a fragment or its subfragments, by path."""
    memories = {}
    for inner, name, _ in fragment.subfragments:
        path = f"{prefix}{name}"
        memories |= {path: inner} if isinstance(inner, MemoryInstance) else _memories(inner, f"{path}.")
    return memories
