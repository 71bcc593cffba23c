"""Multipliers of two elements in one block of an iCE40."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.ice40_block import products_block, signed_product
from openmxu.rtl.fpga.multiplier import MAGNITUDE_WIDTH, OPERAND_WIDTH

__all__ = ["Ice40Multipliers"]


class Ice40Multipliers(wiring.Component):
    """Two :class:`~openmxu.rtl.fpga.multiplier.Multiplier`, whose registers are those of an SB_MAC16, but for signs.

    Operands are magnitudes with a sign above, so that eight bits are enough for each.

    Members
    -------
    activations
        Taken in every cycle.
    weights, load
        Taken if ``load`` is set: the weights of this cycle's activations and those that follow.
    addends
        The products, ``Multiplier.latency`` cycles after the activations.
    """

    def __init__(self) -> None:
        operands = data.ArrayLayout(OPERAND_WIDTH, 2)
        super().__init__(
            {
                "activations": In(operands),
                "weights": In(operands),
                "load": In(1),
                "addends": Out(data.ArrayLayout(signed(2 * MAGNITUDE_WIDTH + 1), 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        negatives, products = [], []
        for index in range(2):
            activation_sign = Signal(name=f"activation_sign_{index}", reset_less=True)
            weight_sign = Signal(name=f"weight_sign_{index}", reset_less=True)
            negative = Signal(name=f"negative_{index}", reset_less=True)
            product = Signal(2 * MAGNITUDE_WIDTH, name=f"product_{index}")
            m.d.sync += [
                activation_sign.eq(self.activations[index][-1]),
                negative.eq(activation_sign ^ weight_sign),
            ]
            with m.If(self.load):
                m.d.sync += weight_sign.eq(self.weights[index][-1])
            m.d.comb += self.addends[index].eq(signed_product(product, negative))
            negatives.append(negative)
            products.append(product)
        m.submodules.block = products_block(
            [self.activations[index][:MAGNITUDE_WIDTH] for index in range(2)],
            [self.weights[index][:MAGNITUDE_WIDTH] for index in range(2)],
            negatives,
            products,
            self.load,
        )
        return m
