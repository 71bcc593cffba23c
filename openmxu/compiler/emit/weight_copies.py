"""Tiles of weights that come through the host port: copies in host memory, read into a ring of unified buffer rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from openmxu.arch.config import Config
from openmxu.compiler.emit.tasks import LoadedTile, Rows, Task, TaskList, WeightTile

__all__ = ["load_copies"]

_TILES = 4
"""Tiles of one Read_Host_Memory."""


def load_copies(tasks: Sequence[Task], addresses: Mapping[int, int], ring: Rows, config: Config) -> list[Task]:
    """The tasks with tiles that have a copy loaded from the unified buffer, where each is read before its use.

    Parameters
    ----------
    addresses
        Of the copies in host memory, by the number of the tile.
    ring
        Unified buffer rows for them.
    """
    numbers = [
        task.tile.number for task in tasks if isinstance(task.tile, WeightTile) and task.tile.number in addresses
    ]
    reads = _reads(numbers, addresses, ring.count // config.size, config)
    result: list[Task] = []
    places: list[Rows] = []
    for task in tasks:
        tile = task.tile
        if isinstance(tile, WeightTile) and tile.number in addresses:
            if not places:
                slot, count, address = next(reads)
                first = ring.first + slot * config.size
                transfer = TaskList(config)
                transfer.layer = task.layer
                transfer.read(first, address, count * config.size)
                result += transfer.tasks
                places = [Rows(first + index * config.size, config.size) for index in range(count)]
            rows = places.pop(0)
            loaded = LoadedTile(rows, transposed=False, format=tile.format)
            cycles = max(task.accumulators.count, config.size)
            task = dataclasses.replace(task, tile=loaded, reads=(*task.reads, rows), cycles=cycles)
        result.append(task)
    return result


def _reads(
    numbers: Sequence[int], addresses: Mapping[int, int], slots: int, config: Config
) -> Iterator[tuple[int, int, int]]:
    """For tiles in the order of use: the slot of the ring of the first one of a read, their number, and the address."""
    start = slot = 0
    while start < len(numbers):
        address, count = addresses[numbers[start]], 1
        while (
            count < min(_TILES, slots - slot, len(numbers) - start)
            and addresses[numbers[start + count]] == address + count * config.tile_bytes
        ):
            count += 1
        yield slot, count, address
        start, slot = start + count, (slot + count) % slots
