"""How a program begins and ends, and how fine its bands are: the cycle model finds the fastest of several ways."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES, Instruction
from openmxu.compiler.emit.tiles import kernel_tiles
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles

__all__ = ["Ramp", "fastest"]

_BUDGET = 120_000
"""Instructions of all the programs that are compared with an effort of 1: some seconds of work."""

_LATENCIES = (4, 100)
"""Of the memories in cycles: a program should be fast with both, and slower than the first one with neither."""

_HIDDEN = 8
"""Beats of reading instructions to one that something waits for."""


@dataclass(frozen=True)
class Ramp:
    """The beginning of a program's first convolution and the end of its last one.

    Attributes
    ----------
    together
        Output tiles of the first group, which are summed up side by side: multiplying a plane takes longer than
        reading the next one.
    startup
        The first tile is multiplied in parts while its rows are read; otherwise bands grow.
    halves
        The last output tile is cut in halves; otherwise bands shrink.
    parameters_first
        Parameters are loaded before anything is summed up; otherwise behind the first sums.
    spare
        Entries of a unit's queue that are left free by instructions that can wait; with -1 none of them waits.
    split
        Bands are so many times smaller than accumulators have room for: the activation unit begins earlier, and the
        weights come more often.
    chunk
        Rows that are read, multiplied, activated and written at a time by a product of few rows; 0 for all of a band.
    """

    together: int = 1
    startup: bool = False
    halves: bool = False
    parameters_first: bool = False
    spare: int = 1
    split: int = 1
    chunk: int = 0

    @classmethod
    def of(cls, operation: Convolution, config: Config) -> Ramp:
        """The one for a long program that begins and ends with this convolution."""
        tiles = kernel_tiles(operation, config.size)
        room = config.accumulator_rows // max(fetch_cycles(config), 2 * config.size) - 1
        is_long = operation.window.is_point and operation.groups == 1 and tiles.limits(config)
        # The activation unit can catch up later, so one tile more hides what reading loses between planes.
        together = max(1, min(row_cycles(config) + 1, tiles.tiles - 1, room)) if is_long else 1
        return cls(together, startup=together > 1, halves=together > 1)

    def others(self, operation: Convolution, config: Config) -> Iterator[list[dict[str, int]]]:
        """Fields to change, one list of alternatives after the other; those that gain most in long programs first."""
        tiles = -(-operation.outputs // config.size) if operation.groups == 1 else 1
        most = min(tiles, row_cycles(config) + 2)
        if not operation.window.is_point:
            yield [{"split": 3}]
            yield [{"spare": spare} for spare in (3, 2)]
        # With small bands, fewer tiles pay off at the beginning.
        fewer = [{"together": count, "startup": False} for count in range(1, min(most, 2) + 1)]
        yield [{"split": split, **change} for split in (3, 2, 6) for change in ({}, *fewer)]
        yield [{"together": count, "startup": start} for count in range(1, most + 1) for start in (False, True)]
        if operation.window.is_point:
            yield [{"chunk": chunk, **change} for chunk in (32, 16) for change in ({}, {"split": 1, "together": 1})]
        yield [{"halves": not self.halves}]
        yield [{"parameters_first": not self.parameters_first}]
        yield [{"spare": spare} for spare in (2, 0, -1, 3)]


class _Compiled(Protocol):
    """Anything with instructions."""

    @property
    def instructions(self) -> tuple[Instruction, ...]: ...


_Result = TypeVar("_Result", bound=_Compiled)


def fastest(compiled: Callable[[Ramp], _Result], operation: Convolution, config: Config, effort: int = 1) -> _Result:
    """The fastest program of those tried, by the cycle model.

    More instructions must save an eighth of the cycles in which the host port reads them: the model does not count
    these, and most of them lie behind other work.

    Parameters
    ----------
    compiled
        Makes the program that begins and ends in one way.
    operation
        The network's first operation.
    effort
        How many programs may be tried, relative to the usual number; with 0 it is the first one alone.
    """
    from openmxu.sim.cycle_model import predict  # needs the RTL, which takes a while to load

    ramp = Ramp.of(operation, config)
    best = compiled(ramp)
    beats = -(-WORD_BYTES // config.host_data_bytes)

    def cycles_of(result: _Compiled) -> list[int]:
        return [predict(result.instructions, config, memory_latency=each).cycles for each in _LATENCIES]

    attempts = effort * _BUDGET // len(best.instructions)
    first = cycles = cycles_of(best) if attempts else []
    tried = {ramp}
    for alternatives in ramp.others(operation, config):
        base = ramp
        for changes in alternatives:
            other = dataclasses.replace(base, **changes)
            if other in tried or attempts == 0:
                continue
            tried.add(other)
            attempts -= 1
            result = compiled(other)
            needed = cycles_of(result)
            added = len(result.instructions) - len(best.instructions)
            is_slower = any(own > other for own, other in zip(needed, first, strict=True))
            saved = (sum(cycles) - sum(needed)) / len(_LATENCIES)
            if not is_slower and _HIDDEN * saved > max(0, added) * beats:
                ramp, best, cycles = other, result, needed
    return best
