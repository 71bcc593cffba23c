"""Format check: finds the faults that follow from an instruction word and the configuration registers alone."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import (
    REGISTERS,
    Format,
    Opcode,
    Operand,
    OutputFormat,
    Pooling,
    Register,
    RegisterFormat,
)
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field, slice_field

__all__ = ["FormatCheck"]

_PART = 16
"""Bits that one condition tests: testing more of them would take longer than combining the conditions."""

_NIBBLE = 4
"""Bits that a logic cell tests."""

_TRANSFERS = (
    *(Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE),
    *(Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE),
)

_NOT_ZERO = {
    **dict.fromkeys(_TRANSFERS, ("rows",)),
    Opcode.READ_WEIGHTS: ("tiles",),
    Opcode.MATRIX_MULTIPLY: ("rows",),
    Opcode.CONVOLVE: ("height", "width"),
    Opcode.ACTIVATE: ("rows",),
}
"""Fields of instructions that must not be zero."""


class FormatCheck(wiring.Component):
    """Finds unknown opcodes, reserved bits, reserved values and illegal values; reports the first of these faults.

    Members
    -------
    load, new_word
        Take ``new_word``, which is checked from the next cycle on.
    word, opcode_is
        The word, and one bit for each of the profile's instructions.
    configuration
        The configuration registers.
    fault, found
        Three cycles later: the fault, ``NONE`` if the fields are legal by themselves; whether there is one.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "load": In(1),
                "new_word": In(isa.WORD_BITS),
                "word": In(isa.WORD_BITS),
                "opcode_is": In(len(config.features.formats)),
                "configuration": In(configuration_layout()),
                "fault": Out(FaultCode),
                "found": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        formats = self._config.features.formats
        opcode_is = by_opcode(self.opcode_is, self._config)
        # Bits of a word that belong to a field of some instruction.
        self._in_fields = reduce(or_, (format.defined_mask for format in formats))
        self._nibbles: dict[int, Signal] = {}
        unknown, reserved, unimplemented, illegal = Signal(), Signal(), Signal(), Signal()
        illegal_values = self._illegal_values()

        def keep(name: str, value: Value) -> Value:
            return delayed(m, value, 1, name)

        def kept(name: str, format: Format, *conditions: Value) -> Value:
            """Whether one of the conditions holds for a word of this format. Words are long, so each condition has a
            register before it is combined with the opcode."""
            if not conditions:
                return Const(0)
            return opcode_is[format.opcode] & keep(f"{name}_{format.opcode.name.lower()}", Cat(conditions)).any()

        def is_zero(format: Format) -> Value:
            """Whether a field of this format that must not be zero is zero; each part of a field has a register."""
            found = []
            for field in (format.field(name) for name in _NOT_ZERO[format.opcode]):
                parts = self._set_bits(((1 << field.width) - 1) << field.offset)
                found.append(~keep(f"{field.name}_{format.opcode.name.lower()}", Cat(parts)).any())
            return opcode_is[format.opcode] & _any(found)

        number = self._field(Opcode.SET_CONFIGURATION, "register")
        illegal_registers = [keep("unknown_register", number >= len(REGISTERS))]
        for register, conditions in self._illegal_configuration().items():
            name = register.name.lower()
            is_register = keep(f"is_{name}", number == register.number)
            illegal_registers.append(is_register & keep(f"illegal_{name}", Cat(conditions)).any())

        m.d.sync += [
            unknown.eq(~self.opcode_is.any()),
            reserved.eq(_any(kept("reserved", f, *self._reserved_bits(f)) for f in formats)),
            unimplemented.eq(_any(kept("unimplemented", f, *self._unimplemented(f)) for f in formats)),
            illegal.eq(
                _any(kept("illegal", f, *illegal_values[f.opcode]) for f in formats if f.opcode in illegal_values)
                | _any(is_zero(f) for f in formats if f.opcode in _NOT_ZERO)
                | (opcode_is[Opcode.SET_CONFIGURATION] & _any(illegal_registers))
            ),
        ]
        with m.If(self.load):
            for place, nibble in self._nibbles.items():
                m.d.sync += nibble.eq(self.new_word[place : place + _NIBBLE].any())
        m.d.sync += self.found.eq(unknown | reserved | unimplemented | illegal)
        with m.If(unknown):
            m.d.sync += self.fault.eq(FaultCode.UNKNOWN_OPCODE)
        with m.Elif(reserved):
            m.d.sync += self.fault.eq(FaultCode.RESERVED_BITS)
        with m.Elif(unimplemented):
            m.d.sync += self.fault.eq(FaultCode.UNIMPLEMENTED)
        with m.Elif(illegal):
            m.d.sync += self.fault.eq(FaultCode.ILLEGAL_VALUE)
        with m.Else():
            m.d.sync += self.fault.eq(FaultCode.NONE)
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _reserved_bits(self, format: Format) -> list[Value]:
        return self._set_bits(~format.defined_mask & ((1 << isa.WORD_BITS) - 1))

    def _set_bits(self, mask: int) -> list[Value]:
        """For each part of the word, whether a bit under the mask is set.

        Most conditions test long fields: where all four bits of a nibble count, and are kept in the word anyway, the OR
        of the nibble is computed when the word is loaded.
        """
        every = (1 << _NIBBLE) - 1
        found = []
        for start in range(0, isa.WORD_BITS, _PART):
            looked_at: list[Value] = []
            for place in range(start, start + _PART, _NIBBLE):
                wanted = mask >> place & every
                if wanted & (self._in_fields >> place) == every:
                    nibble = self._nibbles.setdefault(place, Signal(name=f"nibble_{place}", reset_less=True))
                    looked_at.append(nibble)
                else:
                    looked_at += [self.word[place + bit] for bit in range(_NIBBLE) if wanted >> bit & 1]
            if looked_at:
                found.append(_any(looked_at))
        return found

    def _unimplemented(self, format: Format) -> list[Value]:
        return [
            ~slice_field(self.word, field).matches(*field.implemented)
            for field in format.fields
            if field.implemented is not None
        ]

    def _illegal_values(self) -> dict[Opcode, list[Value]]:
        host_low = ceil_log2(self._config.host_alignment)
        weight_low = ceil_log2(self._config.weight_alignment)
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        transfer = [host[:host_low].any()]
        weights = self._field(Opcode.READ_WEIGHTS, "weights")
        # MatrixMultiply and Convolve have their flags at the same bits.
        lacks_tile = self._field(Opcode.CONVOLVE, "wide_weights") & ~self._field(Opcode.CONVOLVE, "next_tile")
        plane = self.configuration.convolution_plane
        return {
            Opcode.SYNCHRONIZE: [self._field(Opcode.SYNCHRONIZE, "units")[len(isa.UNITS) :].any()],
            **dict.fromkeys(_TRANSFERS, transfer),
            Opcode.LOAD_WEIGHTS: [self.configuration.weight_format.wide],
            Opcode.READ_WEIGHTS: [weights[:weight_low].any()],
            Opcode.MATRIX_MULTIPLY: [lacks_tile],
            Opcode.CONVOLVE: [plane.height == 0, plane.width == 0, lacks_tile],
            Opcode.ACTIVATE: self._illegal_activate(),
        }

    def _illegal_activate(self) -> list[Value]:
        window, plane = self.configuration.pooling_window, self.configuration.pooling_plane
        output = self._field(Opcode.ACTIVATE, "output")
        sizes = (window.height, window.width, plane.height, plane.width, plane.output_width)
        return [
            *((self._field(Opcode.ACTIVATE, "pooling") != Pooling.NONE) & (size == 0) for size in sizes),
            self._field(Opcode.ACTIVATE, "table") & (output != OutputFormat.BYTE),
            (self._field(Opcode.ACTIVATE, "operand") == Operand.ADD) & (output == OutputFormat.INT32),
        ]

    def _illegal_configuration(self) -> dict[RegisterFormat, list[Value]]:
        """For each configuration register, the conditions that make a value illegal."""
        field = next(one for one in self._config.features.formats if one.opcode == Opcode.SET_CONFIGURATION).field(
            "value"
        )

        def part(register: Register, name: str) -> Value:
            return register_field(self.word, register, name)

        others = Cat(part(Register.WEIGHT_FORMAT, "zero_point"), part(Register.WEIGHT_FORMAT, "signed"))
        host_low = ceil_log2(self._config.host_alignment)
        illegal = {
            Register.WEIGHT_FORMAT: [part(Register.WEIGHT_FORMAT, "wide") & others.any()],
            Register.HOST_STRIDE: [part(Register.HOST_STRIDE, "stride")[:host_low].any()],
            Register.LOAD_PARAMETERS: [part(Register.LOAD_PARAMETERS, "count") == 0],
        }
        for register in (Register.INPUT_FORMAT, Register.WEIGHT_FORMAT):
            fits = _fits(part(register, "zero_point"), 8, part(register, "signed"))
            illegal.setdefault(register, []).append(~fits)
        for register in (Register.SOURCE_FORMAT, Register.OPERAND_FORMAT):
            zero_point, is_signed = part(register, "zero_point"), part(register, "signed")
            fits = Mux(part(register, "wide"), _fits(zero_point, 16, is_signed), _fits(zero_point, 8, is_signed))
            illegal[register] = [~fits]
        place = field.offset
        unused = {register: ~register.used_mask & ((1 << field.width) - 1) for register in REGISTERS}
        reserved = {register: self._set_bits(mask << place) for register, mask in unused.items()}
        conditions = {register: reserved[register] + illegal.get(register.number, []) for register in REGISTERS}
        return {register: found for register, found in conditions.items() if found}


def _fits(zero_point: Value, width: int, is_signed: Value) -> Value:
    """Whether a zero point is a value of a format of ``width`` bits."""
    upper = zero_point[width:]
    return Mux(is_signed & zero_point[width - 1], upper.all(), ~upper.any())


def _any(conditions: Iterable[Value]) -> Value:
    return Cat(conditions).any()
