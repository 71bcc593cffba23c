"""Configuration registers of the lite profile."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.isa import WORD_BITS, Opcode, Register
from openmxu.rtl.dispatch.commands import OutputLayout
from openmxu.rtl.dispatch.instruction_fields import field_of, register_field
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat

__all__ = ["LiteConfiguration"]


class LiteConfiguration(wiring.Component):
    """As wide as legal values are.

    Members
    -------
    write, word
        A legal Set_Configuration.
    inputs, weights, output
        INPUT_FORMAT, WEIGHT_FORMAT and OUTPUT_FORMAT.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "write": In(1),
                "word": In(WORD_BITS),
                "inputs": Out(OperandFormat),
                "weights": Out(OperandFormat),
                "output": Out(OutputLayout),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = field_of(self.word, Opcode.SET_CONFIGURATION, "register")
        for register, format in ((Register.INPUT_FORMAT, self.inputs), (Register.WEIGHT_FORMAT, self.weights)):
            with m.If(self.write & (number == register)):
                m.d.sync += [
                    format.zero_point.eq(register_field(self.word, register, "zero_point")),
                    format.is_signed.eq(register_field(self.word, register, "signed")),
                ]
        with m.If(self.write & (number == Register.OUTPUT_FORMAT)):
            for name in ("zero_point", "minimum", "maximum"):
                m.d.sync += self.output[name].eq(register_field(self.word, Register.OUTPUT_FORMAT, name))
        return m
