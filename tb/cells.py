"""Blocks of FPGAs as hardware of our own: what takes the place of an instance in simulations and proofs."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Elaboratable, Fragment, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring

from openmxu.rtl.target import Target

__all__ = ["OnTarget", "UnknownCellError"]


class UnknownCellError(Exception):
    """There is no model of a block, or not for its parameters."""


class OnTarget(Elaboratable):
    """A component as it is elaborated for a target, with models in place of the target's blocks.

    Parameters
    ----------
    component
        What is elaborated.
    target
        What for.
    """

    def __init__(self, component: wiring.Component, target: Target) -> None:
        self._component = component
        self._target = target

    @property
    def component(self) -> wiring.Component:
        """What is elaborated; its ports are those of the hardware."""
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
    """What is connected to an input, or to one that has a port for each bit; zeros where nothing is."""
    if width is not None:
        return Cat(_input(cell, f"{port}{place}") for place in range(width))
    return cell.ports[port][0] if port in cell.ports else Const(0)


def _clocked(cell: Instance, parameter: str) -> bool:
    """Whether a register of a block is used; its only clock is that of the domain."""
    clock = cell.parameters.get(parameter, "NONE")
    if clock not in ("NONE", "CLK0"):
        raise UnknownCellError(f"{parameter} of a {cell.type} must be NONE or CLK0, not {clock!r}")
    return clock == "CLK0"


def _mult18x18d(cell: Instance) -> Module:
    """ECP5: 18 × 18 bits, with registers of its own for factors and product. Resets are not modelled."""
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
        # The sign takes the way of its factor; here it is constant.
        factors.append(Mux(_input(cell, f"SIGNED{port}"), factor.as_signed(), factor))
    product = Signal(36)
    m.d.comb += product.eq(factors[0] * factors[1])
    product = register("output", product)
    for place in range(36):
        m.d.comb += cell.ports[f"P{place}"][0].eq(product[place])
    return m


_MODELS: dict[str, Callable[[Instance], Module]] = {"MULT18X18D": _mult18x18d}
