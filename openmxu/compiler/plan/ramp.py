"""How a program begins and ends, how fine its bands are, and how full it keeps the queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.emit.tiles import kernel_tiles
from openmxu.compiler.ir.operations import Convolution, Operation
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles

__all__ = ["Ramp"]


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
    apart
        The output tiles of the last band are summed up one after the other: those before the last one are activated and
        written meanwhile.
    parameters_first
        Parameters are loaded before anything is summed up; otherwise behind the first sums.
    spare
        Entries of a unit's queue that are left free by instructions that can wait; with -1 none of them waits.
    split
        Bands are so many times smaller than accumulators have room for: the activation unit begins earlier, and the
        weights come more often.
    planes
        Planes of the input that are read at a time, apart from the first one: with far memories few reads take longer
        than the array needs for a plane of few rows.
    tail
        Rows of the last output tile that are summed up to the end, activated and written at a time by a product; 0 for
        all of a band.
    chunk
        Rows that are read, multiplied, activated and written at a time by a product of few rows; 0 for all of a band.
    """

    together: int = 1
    startup: bool = False
    halves: bool = False
    apart: bool = False
    parameters_first: bool = False
    spare: int = 1
    split: int = 1
    planes: int = 1
    tail: int = 0
    chunk: int = 0

    @classmethod
    def of(cls, operation: Operation, config: Config) -> Ramp:
        """The one for a long program that begins and ends with this operation."""
        if not isinstance(operation, Convolution):
            return cls()
        tiles = kernel_tiles(operation, config.size)
        room = config.accumulator_rows // max(fetch_cycles(config), 2 * config.size) - 1
        is_long = operation.window.is_point and operation.groups == 1 and tiles.limits(config)
        # The activation unit can catch up later, so one tile more hides what reading loses between planes.
        together = max(1, min(row_cycles(config) + 1, tiles.tiles - 1, room)) if is_long else 1
        return cls(together, startup=together > 1, halves=together > 1)

    def others(self, operation: Operation, config: Config) -> Iterator[list[dict[str, int]]]:
        """Fields to change, one list of alternatives after the other; those that gain most in long programs first."""
        if isinstance(operation, Convolution):
            yield from self._of_convolution(operation, config)
        yield [{"spare": spare} for spare in (-1, 0, 2, 3)]

    def _of_convolution(self, operation: Convolution, config: Config) -> Iterator[list[dict[str, int]]]:
        tiles = -(-operation.outputs // config.size) if operation.groups == 1 else 1
        most = min(tiles, row_cycles(config) + 2)
        if not operation.window.is_point:
            yield [{"split": 3}]
            yield [{"spare": spare} for spare in (3, 2)]
        elif self.together > 1:
            # With one tile less, bands may become so much larger that they hide the fetch of their weights.
            yield [{"together": self.together - 1}]
        # With small bands, fewer tiles pay off at the beginning.
        fewer = [{"together": count, "startup": False} for count in range(1, min(most, 2) + 1)]
        yield [{"split": split, **change} for split in (3, 6, 12, 2) for change in ({}, *fewer)]
        yield [{"together": count, "startup": start} for count in range(1, most + 1) for start in (False, True)]
        if operation.window.is_point:
            yield [{"chunk": chunk, **change} for chunk in (32, 16) for change in ({}, {"split": 1, "together": 1})]
        yield [{"halves": not self.halves}]
        if operation.window.is_point:
            yield [{"planes": planes} for planes in (2, 3, 4)]
            yield [{"tail": tail, **change} for change in ({}, {"halves": False}) for tail in (8, 16, 32)]
            counts = range(2, min(most, 3) + 1)
            yield [{"apart": True, "tail": tail, "together": count} for tail in (16, 0) for count in counts]
        yield [{"parameters_first": not self.parameters_first}]
