"""Room: places that are left further on, with a register that tells whether there are any."""

from amaranth.hdl import Signal, Value

from openmxu.rtl.common.tally import tally

__all__ = ["Room"]


class Room:
    """Counts the places of a queue that what is sent will come to later, and that nothing else can hold back.

    Whether one is left ends in a register of its own, because it is asked for where it is decided late in a cycle.

    Parameters
    ----------
    places
        All of them, at least 1; all are free at first.

    Attributes
    ----------
    is_left
        One is free.
    """

    def __init__(self, places: int) -> None:
        self._left = Signal(range(places + 1), name="room", init=places)
        self.is_left = Signal(name="has_room", init=1)

    def step(self, takes: Value, frees: Value) -> list:
        """What counts a place that is taken, only while one is left, and one that becomes free."""
        return [
            self._left.eq(tally(self._left, frees, takes)),
            self.is_left.eq(frees | (self.is_left & ~(takes & (self._left == 1)))),
        ]
