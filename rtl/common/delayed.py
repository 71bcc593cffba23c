"""Delay line: a value some cycles later."""

from amaranth.hdl import Module, Signal, Value

__all__ = ["delayed"]


def delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """The value delayed by ``cycles``, through registers ``<name>_0``, ``<name>_1``, …"""
    for cycle in range(cycles):
        register = Signal(value.shape(), name=f"{name}_{cycle}", reset_less=True)
        m.d.sync += register.eq(value)
        value = register
    return value
