"""Two processing elements that share a multiplier block of an iCE40."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from openmxu.rtl.processing_element import OPERAND_WIDTH, element_members

__all__ = ["Ice40Elements", "sign_and_magnitude"]

_MAGNITUDE = OPERAND_WIDTH - 1
_PRODUCT = 2 * _MAGNITUDE


def sign_and_magnitude(operand: Value) -> Value:
    """An operand from -255 to 255 as its magnitude with its sign above."""
    negative = operand[-1]
    return Cat(Mux(negative, -operand, operand)[:_MAGNITUDE], negative)


class Ice40Elements(wiring.Component):
    """Two elements above each other with one SB_MAC16, which multiplies twice 8 × 8 bits.

    Operands are magnitudes with a sign above, so that eight bits are enough for each. The block holds the products, and
    negates them on their way out.

    Parameters
    ----------
    partial_sum_width
        Bits of the partial sums.

    Members
    -------
    upper, lower
        See :class:`~openmxu.rtl.processing_element.ProcessingElement`; nothing connects one with the other.
    """

    def __init__(self, partial_sum_width: int) -> None:
        self._partial_sum_width = partial_sum_width
        element = wiring.Signature(element_members(partial_sum_width)).flip()
        super().__init__({"upper": In(element), "lower": In(element)})

    @property
    def partial_sum_width(self) -> int:
        """Bits of the partial sums."""
        return self._partial_sum_width

    def elaborate(self, platform: object) -> Module:
        m = Module()
        factors, negative, products = [], [], []
        for name, element in (("upper", self.upper), ("lower", self.lower)):
            activation = Signal(OPERAND_WIDTH, name=f"activation_{name}", reset_less=True)
            next_weight = Signal(OPERAND_WIDTH, name=f"next_weight_{name}", reset_less=True)
            weight = Signal(OPERAND_WIDTH, name=f"weight_{name}", reset_less=True)
            partial_sum = Signal(signed(self.partial_sum_width), name=f"partial_sum_{name}", reset_less=True)
            swap = Signal(name=f"swap_{name}")
            shift = Signal(name=f"shift_{name}")
            is_negative = Signal(name=f"is_negative_{name}", reset_less=True)
            product = Signal(_PRODUCT, name=f"product_{name}")
            # What is negative and not zero is below -510: its upper half tells.
            addend = Cat(product, is_negative & product[_MAGNITUDE:].any()).as_signed()
            m.d.sync += [
                activation.eq(element.activation_in),
                swap.eq(element.swap_in),
                shift.eq(element.shift_in),
                is_negative.eq(activation[-1] ^ weight[-1]),
                partial_sum.eq(element.partial_sum_in + addend),
            ]
            with m.If(element.shift_in):
                m.d.sync += next_weight.eq(element.weight_in)
            with m.If(element.swap_in):
                m.d.sync += weight.eq(next_weight)
            m.d.comb += [
                element.activation_out.eq(activation),
                element.swap_out.eq(swap),
                element.shift_out.eq(shift),
                element.weight_out.eq(next_weight),
                element.partial_sum_out.eq(partial_sum),
            ]
            factors.append((activation[:_MAGNITUDE], weight[:_MAGNITUDE]))
            negative.append(is_negative)
            products.append(product)

        halves = {
            f"p_{half}{name}": value
            for half in ("TOP", "BOT")
            # Zero plus or minus the registered product, with no carry.
            for name, value in (
                ("_8x8_MULT_REG", Const(1)),
                ("OUTPUT_SELECT", Const(0, 2)),
                ("ADDSUB_UPPERINPUT", Const(1)),
                ("ADDSUB_LOWERINPUT", Const(1, 2)),
                ("ADDSUB_CARRYSELECT", Const(0, 2)),
            )
        }
        (upper, lower) = factors
        m.submodules.block = Instance(
            "SB_MAC16",
            p_MODE_8x8=Const(1),
            **halves,
            i_CLK=ClockSignal(),
            i_CE=Const(1),
            i_A=Cat(lower[0], upper[0]),
            i_B=Cat(lower[1], upper[1]),
            i_C=Const(0, 16),
            i_D=Const(0, 16),
            i_ADDSUBTOP=negative[0],
            i_ADDSUBBOT=negative[1],
            **{f"i_{port}": Const(0) for port in _UNUSED},
            o_O=Cat(products[1], products[0]),
        )
        return m


_UNUSED = (
    *("AHOLD", "BHOLD", "CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT"),
    *("OLOADTOP", "OLOADBOT", "OHOLDTOP", "OHOLDBOT", "CI", "ACCUMCI", "SIGNEXTIN"),
)
"""Inputs of the block that nothing here needs."""
