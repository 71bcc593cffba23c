"""Fields of instruction words and of register values, in hardware."""

from amaranth.hdl import Shape, Value

from openmxu.arch import isa
from openmxu.arch.config import Config
from openmxu.arch.isa import FORMATS, REGISTERS, Opcode, Register

__all__ = ["by_opcode", "field_of", "field_shape", "register_field", "slice_field"]

_FORMATS = {format.opcode: format for format in FORMATS}


def by_opcode(bits: Value, config: Config) -> dict[Opcode, Value]:
    """``bits``, one for each of the profile's instructions, by opcode."""
    return {format.opcode: bits[index] for index, format in enumerate(config.features.formats)}


def field_shape(field: isa.Field) -> Shape:
    """The field's width and sign."""
    return Shape(field.width, signed=field.signed)


def slice_field(word: Value, field: isa.Field) -> Value:
    """A field of a word, or of a register's value."""
    bits = word[field.offset : field.offset + field.width]
    return bits.as_signed() if field.signed else bits


def field_of(word: Value, opcode: Opcode, name: str) -> Value:
    """A field of an instruction word."""
    return slice_field(word, _FORMATS[opcode].field(name))


def register_field(word: Value, register: Register, name: str) -> Value:
    """A field of the value that a Set_Configuration writes to ``register``."""
    return slice_field(field_of(word, Opcode.SET_CONFIGURATION, "value"), REGISTERS[register].field(name))
