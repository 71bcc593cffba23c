"""Cases whose results depend on the last bit of every rounding in the activation unit.

An added second operand moves a scaled sum next to a tie, so that a difference of one unit in the last place changes the
result: every bit of the scaler has an effect. The sums, and their products with the scale, are exact ties of the
earlier rounding steps, or one bit away from a tie.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import Instruction, Operand, OutputFormat, Register, format_named
from openmxu.arch.numerics import FRACTION_BITS, SMALLEST_FIXED_POINT, fixed_point
from tb.directed.instructions import set_register
from tb.directed.parameters import parameter_set
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["ties"]

_CASES = 2400
"""Number of sums, each with a separate scale, for each configuration."""

_CANCELLED = 160
"""Number of further sums that a large operand cancels."""

_LOADS_A_PROGRAM = 40

_CARRY = 25, 10737418
"""A sum and a scale's significand whose product, 2**28 - 6, is rounded up to a power of two."""

_SMALLEST = int(SMALLEST_FIXED_POINT * (1 << FRACTION_BITS))
"""The smallest product that is not 0, with its fraction bits."""

_CARRY_EXPONENTS = np.arange(-100, 120)
"""Exponents of the products to which the carry is added."""


def ties(config: Config, seed: int) -> Iterator[Case]:
    """Sums given as biases of parameter sets, the same in all columns, plus an operand of ones."""
    rng = np.random.default_rng(seed)
    sums, scales = map(np.concatenate, zip(_sums_and_scales(rng, _CASES), _carries(), strict=True))
    operand_scales = _rests(rng, fixed_point(sums, scales))
    sums, scales, operand_scales = map(
        np.concatenate, zip((sums, scales, operand_scales), _cancelled(rng, _CANCELLED), _smallest(), strict=True)
    )
    count = len(sums)
    order = rng.permutation(count)

    sets = config.parameter_sets
    rows = PARAMETER_ROWS * sets
    loads = -(-count // sets)
    for start in range(0, loads, _LOADS_A_PROGRAM):
        numbers = order[np.arange(start * sets, min(loads, start + _LOADS_A_PROGRAM) * sets) % count]
        sets_of_rows = (parameter_set(config, *values) for values in zip(sums[numbers], scales[numbers], strict=True))
        host = np.concatenate([np.ones(config.size, np.uint8), *sets_of_rows])
        yield Case(
            config,
            tuple(_program(config, rows, operand_scales[numbers].reshape(-1, sets).view(np.uint32))),
            host,
            np.zeros(64, np.uint8),
            seed + start // _LOADS_A_PROGRAM,
            separate=True,
        )


def _program(config: Config, rows: int, operand_scales: NDArray[np.uint32]) -> Iterator[Instruction]:
    """Row ``rows`` holds the operand, the rows after it the results."""
    read, activate = format_named("read_host_memory"), format_named("activate")
    size = config.size
    limits = {"minimum": -(1 << 17), "maximum": (1 << 17) - 1}
    yield set_register(Register.OUTPUT_FORMAT, zero_point=0, **limits)
    yield set_register(Register.OPERAND_ADDRESS, unified_buffer=rows)
    for load, scales in enumerate(operand_scales):
        yield read(unified_buffer=0, rows=rows, host=(1 + load * rows) * size)
        yield set_register(Register.LOAD_PARAMETERS, unified_buffer=0, count=len(scales))
        for number, scale in enumerate(scales):
            yield set_register(Register.OPERAND_SCALE, scale=int(scale))
            # With stalls, a scale waits for its operand an even or an odd number of cycles: some errors show in one of
            # them only.
            yield read(unified_buffer=rows, rows=1, host=0)
            yield activate(
                unified_buffer=rows + 1 + 2 * number,
                rows=1,
                parameters=number,
                operand=Operand.ADD,
                output=OutputFormat.WORD,
            )
        yield HALT


def _sums_and_scales(rng: np.random.Generator, count: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """A third of them with ties in the sum, a third with ties in the product, the others random."""
    significands = rng.integers(1 << 23, 1 << 24, count)
    sums = significands.copy()
    others = rng.integers(1 << 23, 1 << 24, count)
    kinds = np.arange(count) % 3

    # 24 bits followed by a tie, and at most one bit below the tie.
    extra = rng.integers(1, 8, count)
    beside = np.where(rng.random(count) < 0.5, 0, np.left_shift(1, rng.integers(0, extra)))
    tie = (significands << extra) + np.where(beside < 1 << (extra - 1), 1 << (extra - 1), 0) + beside
    sums = np.where(kinds == 0, np.minimum(tie, (1 << 31) - 1), sums)

    # The lower half of the product is a tie of 23 or 24 bits, with at most one bit below it set. Found with the inverse
    # modulo a power of two, which exists for odd numbers.
    for number in np.flatnonzero(kinds == 1):
        while True:
            first = int(rng.integers(1 << 22, 1 << 23)) * 2 + 1
            bits = int(rng.integers(23, 25))
            bit = int(rng.integers(bits))
            wanted = 1 << (bits - 1) | (1 << bit if rng.random() < 0.8 and bit < bits - 1 else 0)
            second = wanted * pow(first, -1, 1 << bits) % (1 << bits) | (1 << 23 if bits == 23 else 0)
            if second >> 23 == 1 and (first * second).bit_length() == bits + 24:
                break
        sums[number], others[number] = first, second
    sums = np.where(kinds == 2, rng.integers(1, 1 << 31, count) >> rng.integers(0, 31, count), sums)
    # Products have from 0 to 17 bits before the binary point; a few are much smaller.
    bits = np.frompyfunc(lambda value: int(value).bit_length(), 1, 1)(sums).astype(np.int64)
    smaller = np.where(rng.random(count) < 0.1, rng.integers(0, 14, count), 0)
    exponents = rng.integers(0, 18, count) - 24 - bits - smaller
    scales = np.ldexp(others.astype(np.float64), exponents).astype(np.float32)
    negative = rng.integers(0, 2, (2, count))
    sums = np.where(negative[0], -sums, sums).astype(np.int32)
    scales = np.where(negative[1], -scales, scales)
    # Some scales are random bit patterns, some sums are 0.
    anything = rng.integers(1 << 32, size=count, dtype=np.uint32).view(np.float32)
    chance = rng.random(count)
    return np.where(chance < 0.03, 0, sums).astype(np.int32), np.where(chance < 0.1, anything, scales)


def _carries() -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Products that only the carry of their rounding makes powers of two."""
    sum_, significand = _CARRY
    scales = np.ldexp(float(significand), _CARRY_EXPONENTS - 28).astype(np.float32)
    return np.full(len(scales), sum_, np.int32), scales


def _rests(rng: np.random.Generator, products: NDArray[np.int64]) -> NDArray[np.float32]:
    """What each product lacks to the next tie, exactly or with one bit more or less."""
    count, one = len(products), 1 << FRACTION_BITS
    bits = np.where(rng.random(count) < 0.5, 0, rng.integers(0, FRACTION_BITS - 1, count))
    off = rng.choice([-1, 0, 1, 1], count) << bits
    rests = (one // 2 - products + off) % one
    operand_scales = np.ldexp(rests.astype(np.float64), -FRACTION_BITS).astype(np.float32)
    assert (fixed_point(np.ones(count, np.int32), operand_scales) == np.where(rests < _SMALLEST, 0, rests)).all()
    return operand_scales


def _smallest() -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """The smallest product that is not 0, as a carry; with it, the sum of both is above a tie, without it below."""
    sum_, significand = _CARRY
    rest = (1 << FRACTION_BITS - 1) - _SMALLEST + 1
    scales = np.ldexp([significand * _SMALLEST, rest], [-28 - FRACTION_BITS, -FRACTION_BITS]).astype(np.float32)
    return np.array([sum_], np.int32), scales[:1], scales[1:]


def _cancelled(
    rng: np.random.Generator, count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Sums with their scales, and operands of 24 bits that cancel all but a tie, or a tie and one bit."""
    bits = 7
    operands = rng.integers(1 << 23, 1 << 24, count)
    sums = (1 << bits - 1) - operands - rng.integers(0, 2, count)
    scale = 2.0**-bits
    return sums.astype(np.int32), np.full(count, scale, np.float32), (operands * scale).astype(np.float32)
