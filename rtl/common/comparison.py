"""Comparisons of unsigned values."""

from amaranth.hdl import Value

__all__ = ["exceeds", "is_less"]


def is_less(first: Value | int, second: Value | int) -> Value:
    """Whether ``first < second``, unsigned: the borrow of a subtraction.

    Yosys shares one subtraction between ``<`` and ``>`` of the same operands, in an order that it chooses; one of the
    two then also needs a test of the difference for zero, which costs more logic than the subtraction and comes after
    it.
    """
    difference = Value.cast(first) - Value.cast(second)
    return difference[-1]


def exceeds(value: Value, limit: int) -> Value:
    """Whether ``value > limit``, unsigned; a power of two needs no subtraction."""
    if limit & (limit - 1):
        return is_less(limit, value)
    bit = limit.bit_length() - 1
    return value[bit + 1 :].any() | (value[bit] & value[:bit].any())
