"""Multiplier of a processing element without a multiplier block."""

from amaranth.hdl import Module, Mux, Signal, Value, signed

from openmxu.rtl.fpga.multiplier import OPERAND_WIDTH, PRODUCT_WIDTH, Multiplier

__all__ = ["LogicMultiplier"]


class LogicMultiplier(Multiplier):
    """Sums of multiples of the weight, one for each two bits of the activation.

    Three times the weight is computed once, when the weight is loaded. The product is left as two numbers: the partial
    sum's adder takes three in little more time than two, and another adder before the registers would cost a cycle.

    Members
    -------
    activation, weight, load, addends
        As of a :class:`Multiplier`.
    """

    addend_count = 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        activation = Signal(signed(OPERAND_WIDTH), reset_less=True)
        weight = Signal(signed(OPERAND_WIDTH), reset_less=True)
        triple = Signal(signed(OPERAND_WIDTH + 2), reset_less=True)
        m.d.sync += activation.eq(self.activation)
        with m.If(self.load):
            m.d.sync += [weight.eq(self.weight), triple.eq(self.weight + (self.weight << 1))]

        def multiple(place: int) -> Value:
            """The weight times two bits of the activation."""
            low, high = activation[place], activation[place + 1]
            return Mux(high, Mux(low, triple, weight << 1), Mux(low, weight, 0))

        lower = Signal(signed(OPERAND_WIDTH + 4), reset_less=True)
        upper = Signal(signed(PRODUCT_WIDTH - 4), reset_less=True)
        sign = Mux(activation[8], weight, 0)
        m.d.sync += [
            lower.eq(multiple(0) + (multiple(2) << 2)),
            upper.eq(multiple(4) + ((multiple(6) - (sign << 2)) << 2)),
        ]
        m.d.comb += [self.addends[0].eq(lower), self.addends[1].eq(upper << 4)]
        return m
