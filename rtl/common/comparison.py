"""Comparisons of unsigned values."""

from amaranth.hdl import Value

__all__ = ["exceeds", "is_less"]


def is_less(first: Value | int, second: Value | int) -> Value:
    """Whether ``first < second``, unsigned: the borrow of a subtraction.

    Of ``<`` and ``>`` Yosys makes one subtraction for each pair of operands, in an order of its own; for one of the two
    it asks as well whether all bits of the difference are zero, which costs more logic than the subtraction and comes
    after it.
    """
    difference = Value.cast(first) - Value.cast(second)
    return difference[-1]


def exceeds(value: Value, limit: int) -> Value:
    """Whether ``value > limit``, unsigned: at a power of two no subtraction."""
    if limit & (limit - 1):
        return is_less(limit, value)
    bit = limit.bit_length() - 1
    return value[bit + 1 :].any() | (value[bit] & value[:bit].any())
