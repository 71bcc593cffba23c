"""Configuration registers: their values at the place in the program that dispatch has reached."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.isa import REGISTERS, WORD_BITS, Opcode, Register
from openmxu.rtl.commands import OutputLayout
from openmxu.rtl.instruction_check import field_of, slice_field
from openmxu.rtl.systolic_data_setup import OperandFormat

__all__ = ["ConfigurationRegisters"]


class ConfigurationRegisters(wiring.Component):
    """Written by Set_Configuration when it is dispatched; commands carry copies, so that earlier ones keep theirs.

    Members
    -------
    write, word
        A legal Set_Configuration.
    input, weight, output, host_stride
        INPUT_FORMAT, WEIGHT_FORMAT, OUTPUT_FORMAT, HOST_STRIDE.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "write": In(1),
                "word": In(WORD_BITS),
                "input": Out(OperandFormat),
                "weight": Out(OperandFormat),
                "output": Out(OutputLayout),
                "host_stride": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = field_of(self.word, Opcode.SET_CONFIGURATION, "register")
        value = field_of(self.word, Opcode.SET_CONFIGURATION, "value")

        def part(register: Register, name: str):
            return slice_field(value, REGISTERS[register].field(name))

        with m.If(self.write):
            with m.Switch(number):
                for register, target in (
                    (Register.INPUT_FORMAT, self.input),
                    (Register.WEIGHT_FORMAT, self.weight),
                ):
                    with m.Case(register):
                        m.d.sync += [
                            target.zero_point.eq(part(register, "zero_point")),
                            target.is_signed.eq(part(register, "signed")),
                        ]
                with m.Case(Register.OUTPUT_FORMAT):
                    for name in ("zero_point", "minimum", "maximum"):
                        m.d.sync += getattr(self.output, name).eq(part(Register.OUTPUT_FORMAT, name))
                with m.Case(Register.HOST_STRIDE):
                    m.d.sync += self.host_stride.eq(part(Register.HOST_STRIDE, "stride"))
        return m
