"""Tally: a count that goes up, down, or both at once."""

from amaranth.hdl import Mux, Signal, Value

__all__ = ["tally"]


def tally(count: Signal, up: Value, down: Value) -> Value:
    """What ``count`` becomes if it goes up, goes down, or both, which changes nothing.

    One addition whose direction is known early enough; whether it counts at all is decided beside the carry chain.
    """
    return Mux(up == down, count, (count + Mux(up, 1, -1))[: len(count)])
