"""Tiles of weights that come through the host port: copies in host memory, read into a ring of unified buffer rows."""

from __future__ import annotations

from collections import deque
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

    def is_copied(task: Task) -> bool:
        return isinstance(task.tile, WeightTile) and task.tile.number in addresses

    size = config.size
    reads = _reads([task.tile.number for task in tasks if is_copied(task)], addresses, ring.count // size, config)
    result = TaskList(config)
    waiting: deque[Rows] = deque()
    for task in tasks:
        if not is_copied(task):
            result.tasks.append(task)
            continue
        if not waiting:
            slot, count, address = next(reads)
            result.layer = task.layer
            result.read(ring.first + slot * size, address, count * size)
            waiting.extend(Rows(ring.first + (slot + index) * size, size) for index in range(count))
        result.add_loaded(task, LoadedTile(waiting.popleft(), transposed=False, format=task.tile.format))
    return result.tasks


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
