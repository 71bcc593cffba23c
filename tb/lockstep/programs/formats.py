"""Random values of the configuration registers for number formats."""

from __future__ import annotations

import numpy as np

from openmxu.arch.isa import REGISTERS, Opcode, Register
from tb.lockstep.programs.builder import Builder

__all__ = ["FORMAT_REGISTERS", "set_format"]

FORMAT_REGISTERS = (
    Register.INPUT_FORMAT,
    Register.WEIGHT_FORMAT,
    Register.OUTPUT_FORMAT,
    Register.SOURCE_FORMAT,
    Register.OPERAND_FORMAT,
    Register.OPERAND_SCALE,
)

_SPECIAL_SCALES = (0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000, 0x38800000, 0x387FFFFF)
"""As bits: zeros, a subnormal number, infinities, NaN, the largest and smallest normal numbers; the smallest scale at
which an added operand of 1 has an effect, and the largest at which it has none."""


def set_format(builder: Builder, register: Register, *, may_be_wide: bool = True) -> None:
    """Write one of :data:`FORMAT_REGISTERS`, if the profile has it."""
    if not builder.has_register(register):
        return
    match register:
        case Register.INPUT_FORMAT:
            builder.set(register, **_byte_format(builder))
        case Register.WEIGHT_FORMAT:
            has_wide = builder.has(Opcode.MATRIX_MULTIPLY, "wide_weights")
            wide = has_wide and may_be_wide and builder.probably(0.35)
            builder.set(register, **({"wide": 1} if wide else _byte_format(builder)))
        case Register.SOURCE_FORMAT | Register.OPERAND_FORMAT:
            wide = builder.probably(0.4)
            builder.set(register, wide=wide, **(_word_format(builder) if wide else _byte_format(builder)))
        case Register.OPERAND_SCALE:
            builder.set(register, scale=_scale(builder))
        case Register.OUTPUT_FORMAT:
            builder.set(register, **_output_format(builder))


def _byte_format(builder: Builder) -> dict[str, int]:
    return _operand_format(builder, 128)


def _word_format(builder: Builder) -> dict[str, int]:
    return _operand_format(builder, 1 << 15)


def _operand_format(builder: Builder, half: int) -> dict[str, int]:
    signed = builder.between(0, 1)
    low = -half if signed else 0
    # The middle keeps sums so small that outputs are not saturated; the ends need the most significant operand bits.
    places = (low + half, low, low + 2 * half - 1, builder.between(low, low + 2 * half - 1))
    return {"signed": signed, "zero_point": builder.one_of(*places, weights=(0.6, 0.1, 0.1, 0.2))}


def _scale(builder: Builder) -> int:
    """Bits of a float32 scale that converts bytes, 16-bit words or sums to bytes or words."""
    if builder.probably(0.1):
        return builder.one_of(*_SPECIAL_SCALES)
    if builder.probably(0.1):
        return builder.between(0, 2**32 - 1)
    scale = builder.one_of(1, 1, 1, -1) * 10 ** builder.rng.uniform(-3, 0.5)
    if builder.probably(0.3):
        scale = np.exp2(-float(builder.between(0, 12)))  # ties
    return int(np.float32(scale).view(np.uint32))


def _output_format(builder: Builder) -> dict[str, int]:
    rng = builder.rng
    kind = rng.random()
    if kind < 0.85:
        low, high = ((0, 255), (-128, 127), (-32768, 32767), (0, 65535))[
            builder.one_of(0, 1, 2, 3, weights=(0.35, 0.35, 0.2, 0.1))
        ]
        minimum, maximum = low, high
        if builder.probably(0.3):
            minimum, maximum = sorted(rng.integers(low, high + 1, 2).tolist())
        near_zero = builder.between(max(low, -128), min(high, 255))
        return {"zero_point": near_zero, "minimum": minimum, "maximum": maximum}
    # Random limits; the lower one may be above the upper one.
    field = REGISTERS[Register.OUTPUT_FORMAT].field("zero_point")
    places = (field.minimum, field.maximum, -300, 300, builder.between(field.minimum, field.maximum))
    return {name: builder.one_of(*places) for name in ("zero_point", "minimum", "maximum")}
