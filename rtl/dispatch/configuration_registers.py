"""Configuration registers: their values at the point in the program that dispatch has reached."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.isa import REGISTERS, WORD_BITS, Opcode
from openmxu.rtl.dispatch.instruction_fields import field_of, field_shape, register_field

__all__ = ["ConfigurationRegisters", "configuration_layout"]

_STORED = tuple(register for register in REGISTERS if not register.is_action)


def configuration_layout() -> data.StructLayout:
    """Every register that keeps its value, in lower case, with the fields of :data:`openmxu.arch.isa.REGISTERS`."""
    return data.StructLayout(
        {
            register.name.lower(): data.StructLayout({field.name: field_shape(field) for field in register.fields})
            for register in _STORED
        }
    )


class ConfigurationRegisters(wiring.Component):
    """Written by Set_Configuration when it is dispatched; commands carry copies, so that earlier ones keep theirs.

    Members
    -------
    write, word
        Execute a legal Set_Configuration; the word has been stable for a cycle or more.
    clear
        Set all registers to 0, which takes two cycles; there must be no write in the cycle between.
    values
        See :func:`configuration_layout`.
    """

    def __init__(self) -> None:
        super().__init__({"write": In(1), "word": In(WORD_BITS), "clear": In(1), "values": Out(configuration_layout())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values = Signal(configuration_layout(), reset_less=True)
        m.d.comb += self.values.eq(values)
        number = field_of(self.word, Opcode.SET_CONFIGURATION, "register")
        for register in _STORED:
            name = register.name.lower()
            is_register = Signal(name=f"is_{name}")
            m.d.sync += is_register.eq(number == register.number)
            with m.If(self.write & is_register):
                for field in register.fields:
                    m.d.sync += values[name][field.name].eq(register_field(self.word, register.number, field.name))
        # A reset, too, reaches all registers through this one.
        clears = Signal(init=1)
        m.d.sync += clears.eq(self.clear)
        with m.If(clears):
            m.d.sync += values.eq(0)
        return m
