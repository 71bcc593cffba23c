"""Multiplier of a processing element, with the registers of its factors and of the product."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["MAGNITUDE_WIDTH", "OPERAND_WIDTH", "PRODUCT_WIDTH", "Multiplier"]

OPERAND_WIDTH = 9
"""Bits of an operand, signed: every int8 or uint8 minus its zero point."""

PRODUCT_WIDTH = 2 * OPERAND_WIDTH
"""Bits of a product."""

MAGNITUDE_WIDTH = OPERAND_WIDTH - 1
"""Bits of an operand's magnitude: no operand is -256."""


class Multiplier(wiring.Component):
    """Multiplies the activation of each cycle by the weight that was loaded last.

    This is the portable form, whose multiplier tools infer. Subclasses for FPGA families do the same in the same
    cycles.

    Members
    -------
    activation
        Taken in every cycle.
    weight, load
        Taken if ``load`` is set: the weight of this cycle's activation and those that follow. Like the activation, it
        is encoded by :meth:`operand`.
    addends
        ``latency`` cycles after an activation; their sum is the product.
    """

    latency = 2
    """Cycles from an activation to its product."""

    addend_count = 1
    """Number of addends that the product consists of."""

    def __init__(self, members: Mapping[str, wiring.Member] = MappingProxyType({})) -> None:
        super().__init__(
            {
                "activation": In(signed(OPERAND_WIDTH)),
                "weight": In(signed(OPERAND_WIDTH)),
                "load": In(1),
                "addends": Out(data.ArrayLayout(signed(PRODUCT_WIDTH), self.addend_count)),
                **members,
            }
        )

    @staticmethod
    def operand(m: Module, name: str, value: Value) -> Value:
        """A signed operand as the multiplier takes it; adds the logic that it needs to ``m``, named ``name``."""
        return value

    def elaborate(self, platform: object) -> Module:
        m = Module()
        activation = Signal(signed(OPERAND_WIDTH), reset_less=True)
        weight = Signal(signed(OPERAND_WIDTH), reset_less=True)
        product = Signal(signed(PRODUCT_WIDTH), reset_less=True)
        m.d.sync += [activation.eq(self.activation), product.eq(activation * weight)]
        with m.If(self.load):
            m.d.sync += weight.eq(self.weight)
        m.d.comb += self.addends[0].eq(product)
        return m

    def accumulate(self, m: Module, partial_sum: Value) -> Value:
        """A partial sum plus the product of this cycle, wrapped or not; adds the logic that it needs to ``m``."""
        return sum(self.addends, partial_sum)
