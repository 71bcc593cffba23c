"""Monitor of a port that pulses for one cycle whenever an operation finishes."""

from __future__ import annotations

from collections.abc import Callable

from tb.bench import Agent, Bench

__all__ = ["Pulses"]


class Pulses(Agent):
    """Counts the cycles in which a port is set.

    Parameters
    ----------
    is_right
        Called at each pulse with the new count, after all agents that were added earlier have sampled their ports;
        returns whether a pulse is expected in this cycle.

    Attributes
    ----------
    count
        Number of pulses so far.
    """

    def __init__(self, bench: Bench, name: str, is_right: Callable[[int], bool] = lambda count: True) -> None:
        self._bench = bench
        self._name = name
        self._port = bench.port(name)
        self._is_right = is_right
        self.count = 0
        bench.add(self)

    def sample(self) -> None:
        if int(self._port.value):
            self.count += 1
            assert self._is_right(self.count), f"{self._name}: pulse {self.count} in cycle {self._bench.cycle}"
