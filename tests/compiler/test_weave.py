"""Reads move ahead of other instructions, but never past one that they would disturb."""

from __future__ import annotations

import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler.tasks import Rows, TaskList, WeightTile
from openmxu.compiler.weave import weave
from openmxu.compiler.weights import ByteFormat

CONFIG = Config()
BYTES = ByteFormat(True, 0)


def multiply(tasks: TaskList, source: int, tile: int, rows: int = 64) -> None:
    tasks.multiply(
        source=Rows(source, rows),
        accumulators=Rows(0, rows),
        accumulate=False,
        tile=WeightTile(tile, BYTES),
        registers={},
    )


def opcodes(tasks: TaskList) -> list[Opcode]:
    return [Opcode(item.word & 0xFF) for item in weave(tasks.tasks, CONFIG).instructions]


def test_reads_come_early() -> None:
    tasks = TaskList(CONFIG)
    for index in range(3):
        tasks.read(64 * index, 0, 64)
        multiply(tasks, 64 * index, index)
    order = opcodes(tasks)
    assert order[:3] == [Opcode.READ_HOST_MEMORY] * 3
    assert order[-1] is Opcode.HALT


def test_reads_leave_room_in_their_queue() -> None:
    """Otherwise the dispatcher would wait for the queue while the array has nothing to do."""
    tasks = TaskList(CONFIG)
    for index in range(20):
        tasks.read(64 * index, 0, 64)
        multiply(tasks, 64 * index, index)
    order = opcodes(tasks)
    first = order.index(Opcode.MATRIX_MULTIPLY)
    assert order[:first].count(Opcode.READ_HOST_MEMORY) == CONFIG.command_queue_depth - 1


@pytest.mark.parametrize("overlap", [True, False])
def test_rows_that_are_used(overlap: bool) -> None:
    tasks = TaskList(CONFIG)
    tasks.read(0, 0, 64)
    multiply(tasks, 0, 0)
    tasks.read(63 if overlap else 64, 0, 64)
    multiply(tasks, 64, 1)
    order = [opcode for opcode in opcodes(tasks) if opcode in (Opcode.READ_HOST_MEMORY, Opcode.MATRIX_MULTIPLY)]
    assert (order[1] is Opcode.MATRIX_MULTIPLY) == overlap


@pytest.mark.parametrize("overlap", [True, False])
def test_host_memory_that_is_written(overlap: bool) -> None:
    """What one group leaves for the next one."""
    tasks = TaskList(CONFIG)
    multiply(tasks, 0, 0)
    tasks.write(0, 640, 9)
    tasks.read(500, 704 if overlap else 768, 10)
    multiply(tasks, 500, 1)
    order = opcodes(tasks)
    assert (order.index(Opcode.READ_HOST_MEMORY) > order.index(Opcode.WRITE_HOST_MEMORY)) == overlap


def test_neighbouring_tiles_are_queued_together() -> None:
    tasks = TaskList(CONFIG)
    for tile in (0, 1, 2, 0, 1, 2, 7):
        multiply(tasks, 0, tile)
    code = weave(tasks.tasks, CONFIG).instructions
    queued = [item for item in code if item.word & 0xFF == Opcode.READ_WEIGHTS]
    tile_bytes = CONFIG.tile_bytes
    assert [(item["weights"], item["tiles"]) for item in queued] == [(0, 3), (0, 3), (7 * tile_bytes, 1)]
