"""Amaranth models that replace instances of FPGA blocks in simulations and proofs."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Elaboratable, Fragment, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from openmxu.rtl.fpga.target import Target

__all__ = ["OnTarget", "UnknownCellError"]


class UnknownCellError(Exception):
    """A block has no model, or its parameters are not supported by the model."""


class OnTarget(Elaboratable):
    """A component elaborated for a target, with the target's blocks replaced by models.

    Parameters
    ----------
    component
        Component to elaborate.
    target
        Target to elaborate it for.
    """

    def __init__(self, component: wiring.Component, target: Target) -> None:
        self._component = component
        self._target = target

    @property
    def component(self) -> wiring.Component:
        """The component; its ports are those of the hardware."""
        return self._component

    def elaborate(self, platform: object) -> Fragment:
        return _with_models(Fragment.get(self._component, self._target))


def _with_models(fragment: Fragment) -> Fragment:
    if isinstance(fragment, Instance):
        if fragment.type not in _MODELS:
            raise UnknownCellError(f"no model of a {fragment.type}")
        return Fragment.get(_MODELS[fragment.type](fragment), None)
    fragment.subfragments = [(_with_models(inner), name, place) for inner, name, place in fragment.subfragments]
    return fragment


def _input(cell: Instance, port: str, width: int | None = None) -> Value:
    """The value connected to an input, or to an input with a separate port for each bit; 0 if unconnected."""
    if width is not None:
        return Cat(_input(cell, f"{port}{place}") for place in range(width))
    return cell.ports[port][0] if port in cell.ports else Const(0)


def _clocked(cell: Instance, parameter: str) -> bool:
    """Whether a register of a block is enabled; its only supported clock is that of the domain."""
    clock = cell.parameters.get(parameter, "NONE")
    if clock not in ("NONE", "CLK0"):
        raise UnknownCellError(f"{parameter} of a {cell.type} must be NONE or CLK0, not {clock!r}")
    return clock == "CLK0"


def _mult18x18d(cell: Instance) -> Module:
    """ECP5: 18 × 18 bits, with optional registers for factors and product. Resets are not modelled."""
    m = Module()
    if _clocked(cell, "REG_PIPELINE_CLK") or "RST0" in cell.ports:
        raise UnknownCellError("no model of a MULT18X18D with a pipeline register or a reset")

    def register(name: str, value: Value) -> Value:
        parameter = f"REG_{name.upper()}"
        if not _clocked(cell, f"{parameter}_CLK"):
            return value
        held = Signal(value.shape(), name=name, reset_less=True)
        with m.If(_input(cell, cell.parameters[f"{parameter}_CE"])):
            m.d.sync += held.eq(value)
        return held

    factors = []
    for port in ("A", "B"):
        factor = Signal(18, name=f"factor_{port.lower()}")
        m.d.comb += factor.eq(_input(cell, port, 18))
        factor = register(f"input{port.lower()}", factor)
        # The block has registers for the signs too; they are not needed here, because the signs are constant.
        factors.append(Mux(_input(cell, f"SIGNED{port}"), factor.as_signed(), factor))
    product = Signal(36)
    m.d.comb += product.eq(factors[0] * factors[1])
    product = register("output", product)
    for place in range(36):
        m.d.comb += cell.ports[f"P{place}"][0].eq(product[place])
    return m


_MAC16_SETTINGS = {
    "MODE_8x8": 1,
    "TOP_8x8_MULT_REG": 1,
    "BOT_8x8_MULT_REG": 1,
    "TOPADDSUB_UPPERINPUT": 1,
    "BOTADDSUB_UPPERINPUT": 1,
    "TOPADDSUB_LOWERINPUT": 1,
    "BOTADDSUB_LOWERINPUT": 1,
}
"""The supported settings, besides registers for the factors; all other parameters must be 0."""


def _sb_mac16(cell: Instance) -> Module:
    """iCE40: two unsigned 8 × 8-bit products, registered and then added or subtracted; registers for the factors are
    optional."""
    m = Module()
    settings = {name: Const.cast(value).value for name, value in cell.parameters.items()}
    others = {name: value for name, value in settings.items() if value and name not in ("A_REG", "B_REG")}
    if others != _MAC16_SETTINGS:
        raise UnknownCellError(f"no model of an SB_MAC16 with {settings}")
    factors = []
    for port in ("A", "B"):
        factor = _input(cell, port)
        if settings.get(f"{port}_REG"):
            register = Signal(16, name=f"factor_{port.lower()}", reset_less=True)
            with m.If(_input(cell, "CE") & ~_input(cell, f"{port}HOLD")):
                m.d.sync += register.eq(factor)
            factor = register
        factors.append(factor)
    output = cell.ports["O"][0]
    for half, (name, port) in enumerate((("BOT", "D"), ("TOP", "C"))):
        product = Signal(16, name=f"product_{name.lower()}", reset_less=True)
        one, other = (factor.word_select(half, 8) for factor in factors)
        with m.If(_input(cell, "CE")):
            m.d.sync += product.eq(one * other)
        addend = _input(cell, port)
        result = Mux(_input(cell, f"ADDSUB{name}"), addend - product, addend + product)
        m.d.comb += output[16 * half : 16 * half + 16].eq(result)
    return m


def _sb_spram256ka(cell: Instance) -> Module:
    """iCE40: 16 bits wide, one access per cycle. In the cycle after a write, the output is deliberately wrong data."""
    m = Module()
    if _input(cell, "MASKWREN").value != 0b1111:
        raise UnknownCellError("no model of an SB_SPRAM256KA that writes parts of a word")
    address = Cat(_input(cell, "ADDRESS"))
    # Unconnected (constant) upper address bits make the memory smaller.
    *parts, unused = cell.ports["ADDRESS"][0].parts
    depth = 1 << len(Cat(parts)) if isinstance(unused, Const) else 1 << len(address)
    m.submodules.memory = memory = Memory(shape=16, depth=depth, init=[])
    read, write = memory.read_port(), memory.write_port()
    written = Signal()
    m.d.sync += written.eq(_input(cell, "WREN"))
    m.d.comb += [
        read.addr.eq(address),
        read.en.eq(1),
        write.addr.eq(address),
        write.data.eq(_input(cell, "DATAIN")),
        write.en.eq(_input(cell, "WREN")),
        cell.ports["DATAOUT"][0].eq(Mux(written, ~read.data, read.data)),
    ]
    return m


def _ccu2c(cell: Instance) -> Module:
    """ECP5: two bits of a carry chain, each with a LUT4 that propagates the carry and a LUT2 that generates it."""
    if any(cell.parameters[f"INJECT1_{half}"] != "NO" for half in (0, 1)):
        raise UnknownCellError("no model of a CCU2C that injects a carry")
    m = Module()
    carry = _input(cell, "CIN")
    for half in (0, 1):
        table = Const.cast(cell.parameters[f"INIT{half}"])
        index = Cat(_input(cell, f"{port}{half}") for port in "ABCD")
        propagates, generates = Signal(name=f"propagates_{half}"), Signal(name=f"generates_{half}")
        m.d.comb += [
            propagates.eq(table.bit_select(index, 1)),
            generates.eq(table[:4].bit_select(index[:2], 1)),
            cell.ports[f"S{half}"][0].eq(propagates ^ carry),
        ]
        carry = Mux(propagates, carry, generates)
    m.d.comb += cell.ports["COUT"][0].eq(carry)
    return m


_MODELS: dict[str, Callable[[Instance], Module]] = {
    "CCU2C": _ccu2c,
    "MULT18X18D": _mult18x18d,
    "SB_MAC16": _sb_mac16,
    "SB_SPRAM256KA": _sb_spram256ka,
}
