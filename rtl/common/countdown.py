"""Countdown: a counter that tells in a register whether it is at its last step."""

from amaranth.hdl import Shape, Signal, Value

__all__ = ["Countdown"]


class Countdown:
    """Counts steps that are left, from any number of at least 1 down to 1.

    The comparison ends in a register of its own, because what happens at the last step is decided by it and goes far.

    Parameters
    ----------
    shape
        Of the number of steps.
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
        """What makes the next step the first one of ``steps``."""
        return [self._left.eq(steps), self.last.eq(steps == 1)]

    def step(self) -> list:
        """What leads to the next step."""
        return [self._left.eq(self._left - 1), self.last.eq(self.is_second_last)]
