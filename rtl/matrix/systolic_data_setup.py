"""Systolic data setup: turns the bytes of a unified buffer row into skewed operands of the array."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.common.skew import Skew
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH

__all__ = ["OperandFormat", "SystolicDataSetup", "operand_value"]


class OperandFormat(data.Struct):
    """Format of the bytes of operands: int8 or uint8, minus a zero point of the same type."""

    zero_point: signed(OPERAND_WIDTH)
    is_signed: 1


def operand_value(byte: Value, format: data.View) -> Value:
    """The operand that ``byte`` stands for, 10 bits; with a legal zero point the lower 9 hold all of it."""
    return Cat(byte, byte[7] & format.is_signed).as_signed() - format.zero_point


class SystolicDataSetup(wiring.Component):
    """Subtracts the input zero point, replaces rows outside their plane with zeros, and skews.

    If a row comes in cycle t, lane k leaves in cycle t + ``latency`` + k.

    Members
    -------
    row
        S bytes; any value while there is no row.
    format
        Format of the bytes.
    zero
        The row lies outside its plane: its operands are zero, whatever its bytes and their format.
    swap_in
        This row is the first one that uses the next tile; 0 while there is no row.
    activations, swap_out
        For the array; ``swap_out`` belongs to lane 0.
    """

    latency = 1
    """Cycles from a row to lane 0."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "row": In(data.ArrayLayout(8, config.size)),
                "format": In(OperandFormat),
                "zero": In(1),
                "swap_in": In(1),
                "activations": Out(data.ArrayLayout(signed(OPERAND_WIDTH), config.size)),
                "swap_out": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.config.size
        m.submodules.skew = skew = Skew(signed(OPERAND_WIDTH), size)

        operands = Signal(data.ArrayLayout(signed(OPERAND_WIDTH), size), reset_less=True)
        for lane in range(size):
            m.d.sync += operands[lane].eq(Mux(self.zero, 0, operand_value(self.row[lane], self.format)))
        m.d.sync += self.swap_out.eq(self.swap_in)

        m.d.comb += [
            skew.straight.eq(operands),
            self.activations.eq(skew.skewed),
        ]
        return m
