"""Shared counters: up-down counter, countdown, credit counter."""

from amaranth.hdl import Mux, Shape, Signal, Value

__all__ = ["Countdown", "CreditCounter", "up_down"]


def up_down(count: Signal, up: Value, down: Value) -> Value:
    """Next value of an up-down counter; ``up`` and ``down`` at the same time cancel out.

    It is one addition whose direction is known early; its enable is computed in parallel with the carry chain.
    """
    return Mux(up == down, count, (count + Mux(up, 1, -1))[: len(count)])


class Countdown:
    """Counts the steps left, from any number of at least 1 down to 1.

    The comparison ends in a separate register, because much depends on ``last``, late in the cycle.

    Parameters
    ----------
    shape
        Shape of the number of steps.
    name
        Prefix of the registers' names.

    Attributes
    ----------
    last
        This is the last step.
    """

    def __init__(self, shape: Shape, name: str) -> None:
        self._left = Signal(shape, name=f"{name}_left", reset_less=True)
        self.last = Signal(name=f"{name}_last", reset_less=True)

    @property
    def is_second_last(self) -> Value:
        """The next step is the last one."""
        return self._left == 2

    def start(self, steps: Value) -> list:
        """Assignments that make the next step the first one of ``steps``."""
        return [self._left.eq(steps), self.last.eq(steps == 1)]

    def step(self) -> list:
        """Assignments that lead to the next step."""
        return [self._left.eq(self._left - 1), self.last.eq(self.is_second_last)]


class CreditCounter:
    """Counts the free entries of a downstream queue that in-flight items will occupy.

    An item is sent only with a credit; the queue returns the credit when the item leaves it.

    Parameters
    ----------
    credits
        Entries of the queue, at least 1; all are free at first.

    Attributes
    ----------
    has_credit
        At least one entry is free. It is a register, because it is used late in the cycle.
    """

    def __init__(self, credits: int) -> None:
        self._left = Signal(range(credits + 1), name="credits", init=credits)
        self.has_credit = Signal(name="has_credit", init=1)

    def step(self, takes: Value, returns: Value) -> list:
        """Assignments that count a credit that is taken, only while there is one, and one that is returned."""
        return [
            self._left.eq(up_down(self._left, returns, takes)),
            self.has_credit.eq(returns | (self.has_credit & ~(takes & (self._left == 1)))),
        ]
