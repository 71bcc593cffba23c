"""The numerics against models with exact rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled, elements, fixed_point, operand, pool, requantize

INFINITE = Fraction(2) ** 200
"""Stands for infinity: larger than every float32, and larger than every limit after rounding."""

LIMIT = 1 << 17
INT32 = st.integers(-(2**31), 2**31 - 1)


def round_to_float32(value: Fraction) -> Fraction:
    """Round to IEEE 754 binary32, to nearest, ties to even."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(value / quantum) * quantum  # round() of a Fraction is exact, ties to even
    if abs(rounded) >= Fraction(2) ** 128:
        return INFINITE if value > 0 else -INFINITE
    return rounded


def factor_of(bits: int) -> Fraction:
    """The factor that the bits of a scale represent: subnormal numbers are zero, infinity and NaN are infinite."""
    sign = -1 if bits >> 31 else 1
    exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0:
        return Fraction(0)
    if exponent == 255:
        return sign * INFINITE
    return sign * (Fraction(1) + Fraction(mantissa, 1 << 23)) * Fraction(2) ** (exponent - 127)


def scaled(total: int, bits: int) -> Fraction:
    """The float32 product of a total and a scale."""
    return round_to_float32(round_to_float32(Fraction(total)) * factor_of(bits))


def model(accumulator: int, bits: int, zero_point: int, minimum: int, maximum: int) -> int:
    product = scaled(accumulator, bits)
    return min(max(round(product) + zero_point, minimum), maximum)


def hardware(
    accumulators: list[int], bits: list[int], zero_point: int, minimum: int, maximum: int
) -> NDArray[np.int32]:
    scale = np.array(bits, np.uint32).view(np.float32)
    return requantize(np.array(accumulators, np.int32), scale, zero_point, minimum, maximum)


def scale_bits(scale: float) -> int:
    return int(np.float32(scale).view(np.uint32))


@st.composite
def tie_prone_int32(draw: st.DrawFn) -> int:
    """Sums that are a tie, or next to one, when rounded to float32."""
    shift = draw(st.integers(0, 7))
    value = (draw(st.integers(1 << 23, (1 << 24) - 1)) << shift) + (1 << shift >> 1) + draw(st.integers(-1, 1))
    return min(value, 2**31 - 1) * draw(st.sampled_from((1, -1)))


@st.composite
def short_scale(draw: st.DrawFn) -> int:
    """Scales with few significand bits, so that products are often ties, with results mostly within the limits."""
    exponent = draw(st.integers(127 - 32, 127 + 8))
    mantissa = draw(st.integers(0, 15)) << draw(st.integers(0, 19))
    return draw(st.integers(0, 1)) << 31 | exponent << 23 | mantissa


ACCUMULATOR = st.one_of(INT32, tie_prone_int32(), st.integers(-300, 300))
SCALE = st.one_of(st.integers(0, 2**32 - 1), short_scale())
POINT = st.integers(-LIMIT, LIMIT - 1)


@settings(max_examples=1000)
@given(ACCUMULATOR, SCALE, POINT, POINT, POINT)
def test_equals_the_exact_model(accumulator: int, bits: int, zero_point: int, minimum: int, maximum: int) -> None:
    result = hardware([accumulator], [bits], zero_point, minimum, maximum)
    assert result.dtype == np.int32
    assert result.tolist() == [model(accumulator, bits, zero_point, minimum, maximum)]


@pytest.mark.parametrize("log2_results", [3, 7, 17, 20])
def test_equals_the_exact_model_on_many_random_numbers(log2_results: int) -> None:
    """Accumulators of every magnitude, with scales for results of about a given magnitude."""
    random = np.random.default_rng(log2_results)
    magnitude = random.integers(0, 32, 3000)
    accumulators = [int(random.integers(-(2**31), 2**31) >> int(31 - m)) for m in magnitude]
    scales = (random.uniform(-2, 2, 3000) * 2.0 ** (log2_results - magnitude)).astype(np.float32)
    bits = scales.view(np.uint32).tolist()
    expected = [model(a, b, -3, -LIMIT, LIMIT - 1) for a, b in zip(accumulators, bits, strict=True)]
    assert hardware(accumulators, bits, -3, -LIMIT, LIMIT - 1).tolist() == expected
    assert len(set(expected)) > 10


@pytest.mark.parametrize(
    ("accumulator", "scale", "expected"),
    [
        (1, 0.5, 0),
        (3, 0.5, 2),
        (5, 0.5, 2),
        (7, 0.5, 4),
        (-1, 0.5, 0),
        (-3, 0.5, -2),
        (-5, 0.5, -2),
        (3, -0.5, -2),
        (-3, -0.5, 2),
        # Sums that are no ties, but become ties in float32: 2**24 + 1 is rounded to 2**24, 3 * 2**24 - 1 to 3 * 2**24.
        (2**24 + 1, 2.0**-25, 0),
        (-(2**24) - 1, 2.0**-25, 0),
        (3 * 2**24 - 1, 2.0**-25, 2),
        (-3 * 2**24 + 1, 2.0**-25, -2),
        # Sums that are ties in float32: 2**24 + 1 is rounded down to 2**24, 2**24 + 3 up to 2**24 + 4.
        (2**24 + 1, 1.5 * 2.0**-24, 2),
        (2**24 + 3, 2.0**-25, 1),
        (2**31 - 1, 2.0**-14, 2**17),
        (-(2**31), 2.0**-14, -(2**17)),
        (-(2**31), -(2.0**-15), 2**16),
    ],
)
def test_ties_and_extremes(accumulator: int, scale: float, expected: int) -> None:
    assert hardware([accumulator], [scale_bits(scale)], 0, -LIMIT, LIMIT - 1).tolist() == [min(expected, LIMIT - 1)]


@pytest.mark.parametrize(
    ("accumulator", "bits", "expected"),
    [(1232, 0x3D0D4C78, 42), (164, 0x3EEED44B, 76), (67, 0x3F9F85BB, 84), (701, 0x3DEE1B06, 82)],
)
def test_rounds_twice(accumulator: int, bits: int, expected: int) -> None:
    """The exact product is next to n + 1/2, and its float32 equals it: rounding once would give another integer."""
    exact = round(accumulator * factor_of(bits))
    assert exact != expected
    assert hardware([accumulator], [bits], 0, -LIMIT, LIMIT - 1).tolist() == [expected]


@pytest.mark.parametrize("subnormal", [0x00000000, 0x00000001, 0x007FFFFF, 0x80000000, 0x807FFFFF])
def test_a_subnormal_scale_is_zero(subnormal: int) -> None:
    assert hardware([2**31 - 1, -(2**31), 0], [subnormal] * 3, 7, -128, 127).tolist() == [7, 7, 7]


@pytest.mark.parametrize("infinite", [0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF])
def test_infinity_and_nan_saturate_by_sign(infinite: int) -> None:
    assert hardware([5, -5, 0], [infinite] * 3, 7, -128, 127).tolist() == [127, -128, 7]
    assert hardware([5, -5, 0], [infinite | 1 << 31] * 3, 7, -128, 127).tolist() == [-128, 127, 7]


def test_the_largest_product_overflows_to_the_limit() -> None:
    assert hardware([2**31 - 1, -(2**31)], [0x7F7FFFFF] * 2, -LIMIT, -LIMIT, LIMIT - 1).tolist() == [LIMIT - 1, -LIMIT]


def test_maximum_wins_over_minimum() -> None:
    assert hardware([0], [0], 0, 10, -10).tolist() == [-10]


def test_one_scale_for_all_and_one_for_each_column() -> None:
    accumulators = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
    one = requantize(accumulators, np.float32(0.5), 0, -128, 127)
    each = requantize(accumulators, np.array([0.5, 1, 2, -1], np.float32), 0, -128, 127)
    assert one.tolist() == [[-3, -2, -2, -2], [-1, 0, 0, 0], [1, 2, 2, 2]]
    assert each[:, 1].tolist() == [-5, -1, 3]
    assert each[:, 3].tolist() == [3, -1, -5]


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.sampled_from(((False, 0), (True, -128))),
    st.integers(0, 255),
)
def test_operand_is_the_difference_to_the_zero_point(
    stored: list[int], kind: tuple[bool, int], zero_point: int
) -> None:
    signed, low = kind
    zero_point += low
    result = operand(np.array(stored, np.uint8), zero_point, signed)
    assert result.dtype == np.int32
    assert result.tolist() == [byte - 256 * (signed and byte >= 128) - zero_point for byte in stored]
    assert np.abs(result).max() <= 255


def exact_fixed_point(total: int, bits: int) -> int:
    """The product in units of 2**-24: truncated towards zero, at most 2**18, and 0 below 2**-14."""
    product = scaled(total, bits)
    if abs(product) < Fraction(1, 1 << 14):
        return 0
    magnitude = int(min(abs(product), Fraction(1 << 18)) * (1 << 24))
    return magnitude if product > 0 else -magnitude


@settings(max_examples=1000)
@given(ACCUMULATOR, SCALE)
def test_fixed_point_equals_the_exact_model(total: int, bits: int) -> None:
    result = fixed_point(np.array([total], np.int32), np.array([bits], np.uint32).view(np.float32))
    assert result.dtype == np.int64
    assert result.tolist() == [exact_fixed_point(total, bits)]


@pytest.mark.parametrize(
    ("total", "scale", "expected"),
    [
        (1, 2.0**-14, 1 << 10),
        (-1, 2.0**-14, -(1 << 10)),
        (1, 2.0**-14 * (1 - 2.0**-24), 0),
        (-1, 2.0**-15, 0),
        # Truncated towards zero: the last bits of the significand are below 2**-24.
        (1, 2.0**-14 * (2 - 2.0**-23), (1 << 11) - 1),
        (-1, 2.0**-14 * (2 - 2.0**-23), -(1 << 11) + 1),
        (1, 2.0**18 * (1 - 2.0**-24), (1 << 42) - (1 << 18)),
        (1, 2.0**18, 1 << 42),
        (-(2**31), 3.0e38, -(1 << 42)),
        (0, np.inf, 0),
    ],
)
def test_fixed_point_ends(total: int, scale: float, expected: int) -> None:
    assert fixed_point(np.array([total], np.int32), np.float32(scale)).tolist() == [expected]


@settings(max_examples=1000)
@given(ACCUMULATOR, SCALE, st.integers(-65535, 65535), SCALE, POINT, POINT, POINT)
def test_a_sum_equals_the_exact_model(
    first: int, first_bits: int, second: int, second_bits: int, zero_point: int, minimum: int, maximum: int
) -> None:
    scales = np.array([first_bits, second_bits], np.uint32).view(np.float32)
    operands = np.array([first, second], np.int32)
    result = add_scaled(operands[:1], scales[:1], operands[1:], scales[1:], zero_point, minimum, maximum)
    total = Fraction(exact_fixed_point(first, first_bits) + exact_fixed_point(second, second_bits), 1 << 24)
    assert result.dtype == np.int32
    assert result.tolist() == [min(max(round(total) + zero_point, minimum), maximum)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(1.5, 1.0, 2), (2.5, 1.0, 4), (-1.5, -1.0, -2), (-2.5, -1.0, -4), (0.25, 0.25, 0), (1.25, 0.25, 2)],
)
def test_a_sum_is_rounded_once(first: float, second: float, expected: int) -> None:
    one = np.ones(1, np.int32)
    assert add_scaled(one, np.float32(first), one, np.float32(second), 0, -100, 100).tolist() == [expected]


def test_operands_cancel_before_they_are_clamped() -> None:
    large = np.array([1 << 17], np.int32)
    assert add_scaled(large, np.float32(1.5), large, np.float32(-1.25), 3, -LIMIT, LIMIT - 1).tolist() == [32771]


@given(
    st.lists(st.integers(0, 65535), min_size=1, max_size=20),
    st.booleans(),
    st.booleans(),
    st.integers(0, 65535),
)
def test_elements_are_differences_to_the_zero_point(
    stored: list[int], signed: bool, wide: bool, zero_point: int
) -> None:
    values = 1 << (16 if wide else 8)
    stored = [value % values for value in stored]
    zero_point = zero_point % values - signed * values // 2
    rows = [[value & 0xFF] for value in stored]
    if wide:
        rows = [[byte] for value in stored for byte in (value & 0xFF, value >> 8)]
    result = elements(np.array(rows, np.uint8), zero_point, signed, wide)
    assert result.dtype == np.int32
    assert result.shape == (len(stored), 1)
    wanted = [value - values * (signed and value >= values // 2) - zero_point for value in stored]
    assert result[:, 0].tolist() == wanted
    assert np.abs(result).max() < values


@given(st.data(), st.booleans(), st.integers(1, 4), st.integers(1, 6), st.integers(1, 3))
def test_windows_are_pooled(data: st.DataObject, maximum: bool, count: int, positions: int, columns: int) -> None:
    shape = (count, positions, columns)
    values = data.draw(st.lists(INT32, min_size=count * positions * columns, max_size=count * positions * columns))
    inside = data.draw(st.lists(st.booleans(), min_size=count * positions, max_size=count * positions))
    windows = np.array(values, np.int32).reshape(shape)
    counts = np.array(inside).reshape(shape[:2])
    result = pool(windows, counts, maximum)
    assert result.dtype == np.int32
    for window in range(count):
        for column in range(columns):
            kept = [int(windows[window, place, column]) for place in range(positions) if counts[window, place]]
            wanted = max(kept, default=-(2**31)) if maximum else (sum(kept) + 2**31) % 2**32 - 2**31
            assert result[window, column] == wanted
