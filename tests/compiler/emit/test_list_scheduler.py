"""Reads move ahead of other instructions, but never past one that they conflict with."""

from __future__ import annotations

import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode, Register
from openmxu.compiler.emit.list_scheduler import list_schedule
from openmxu.compiler.emit.tasks import LoadedTile, Rows, TaskList, WeightTile
from openmxu.compiler.emit.weights import ByteFormat

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
    return [Opcode(item.word & 0xFF) for item in list_schedule(tasks.tasks, CONFIG).instructions]


def test_reads_come_early() -> None:
    tasks = TaskList(CONFIG)
    for index in range(3):
        tasks.read(64 * index, 0, 64)
        multiply(tasks, 64 * index, index)
    order = opcodes(tasks)
    # The first tile is asked for behind the first input.
    assert order[:3] == [Opcode.READ_HOST_MEMORY, Opcode.SET_CONFIGURATION, Opcode.READ_WEIGHTS]
    assert order[3:5] == [Opcode.READ_HOST_MEMORY] * 2
    assert order[-1] is Opcode.HALT


def test_reads_leave_room_in_their_queue() -> None:
    """Otherwise the dispatcher would wait for the queue while the array is idle."""
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
    """Reads wait for writes of the same host memory, through which one group passes tensors to the next."""
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
    code = list_schedule(tasks.tasks, CONFIG).instructions
    queued = [item for item in code if item.word & 0xFF == Opcode.READ_WEIGHTS]
    tile_bytes = CONFIG.tile_bytes
    assert [(item["weights"], item["tiles"]) for item in queued] == [(0, 3), (0, 3), (7 * tile_bytes, 1)]


def test_tiles_of_the_unified_buffer_are_loaded_ahead() -> None:
    """As many as the queue has entries, also where the read that brings them comes behind the products before them."""
    tasks, size = TaskList(CONFIG), CONFIG.size
    tasks.read(0, 0, 64)
    for first in (1000, 2000):
        tasks.read(first, first * size, 4 * size)
        for index in range(4):
            tasks.multiply(
                source=Rows(0, 64),
                accumulators=Rows(0, 64),
                accumulate=False,
                tile=LoadedTile(Rows(first + index * size, size), transposed=False, format=BYTES),
                registers={},
            )
    letters = {Opcode.LOAD_WEIGHTS: "L", Opcode.MATRIX_MULTIPLY: "M"}
    order = "".join(letters.get(opcode, "") for opcode in opcodes(tasks))
    assert order == "L" + "MLLLL" + "ML" * 3 + "M" * 4


def activate(tasks: TaskList, source: int, target: int, rows: int = 64) -> None:
    tasks.activate(
        source=Rows(source, rows),
        from_unified_buffer=True,
        target=Rows(target, rows),
        results=rows,
        positions=1,
        operand_rows=None,
        registers={},
        parameters=0,
    )


def order_of_work(tasks: TaskList) -> str:
    """The order of instructions: A for each Activate, M for each MatrixMultiply."""
    letters = {Opcode.ACTIVATE: "A", Opcode.MATRIX_MULTIPLY: "M"}
    return "".join(letters.get(opcode, "") for opcode in opcodes(tasks))


def test_activations_leave_room_in_their_queue() -> None:
    """Instructions of the array do not wait for those that the activation unit cannot begin yet."""
    tasks = TaskList(CONFIG)
    for index in range(10):
        activate(tasks, 64 * index, 1000)
    multiply(tasks, 2000, 0)
    ahead = CONFIG.command_queue_depth - 1
    assert order_of_work(tasks) == "A" * ahead + "M" + "A" * (10 - ahead)


@pytest.mark.parametrize(("source", "passes"), [(1000 + 63, False), (1000 + 64, True)])
def test_activations_of_the_arrays_inputs_come_first(source: int, passes: bool) -> None:
    tasks = TaskList(CONFIG)
    for index in range(6):
        activate(tasks, 64 * index, 1000)
    multiply(tasks, source, 0)
    assert order_of_work(tasks).endswith("M") is not passes


def last_of(opcode: Opcode, stride: int, wide: bool) -> int:
    """Convolutions before the last of twelve writes or activations, which are all ready when the first one begins."""
    tasks = TaskList(CONFIG)
    for index in range(12):
        if opcode is Opcode.ACTIVATE:
            activate(tasks, 3000 + 64 * index, 5000 + 64 * index)
        else:
            tasks.write(3000 + 64 * index, 4096 * index, 64)
    for index in range(100):
        tasks.convolve(
            source=Rows(0, 1024),
            accumulators=Rows(0, 64),
            accumulate=False,
            tile=WeightTile(index, BYTES),
            registers={Register.CONVOLUTION_PLANE: {"height": 8, "width": 32, "stride_y": 1, "stride_x": stride}},
            wide=wide,
            height=8,
            width=8,
            dy=0,
            dx=0,
        )
    order = opcodes(tasks)
    last = max(place for place, other in enumerate(order) if other is opcode)
    return order[:last].count(Opcode.CONVOLVE)


@pytest.mark.parametrize("opcode", [Opcode.ACTIVATE, Opcode.WRITE_HOST_MEMORY])
def test_what_reads_beside_an_array_that_holds_a_bank_takes_longer(opcode: Opcode) -> None:
    """The rows of every other position lie in one of the two banks, as do the low bytes of 16-bit inputs, with which a
    convolution takes twice as long."""
    alone = last_of(opcode, 1, wide=False)
    assert last_of(opcode, 3, wide=False) == alone
    assert last_of(opcode, 2, wide=False) > 1.5 * alone > 0
    assert 2 * last_of(opcode, 1, wide=True) > 1.5 * alone


def test_sums_are_activated_before_they_are_overwritten() -> None:
    tasks = TaskList(CONFIG)
    for index in range(6):
        activate(tasks, 64 * index, 1000)
    tasks.activate(
        source=Rows(0, 64),
        from_unified_buffer=False,
        target=Rows(1500, 64),
        results=64,
        positions=1,
        operand_rows=None,
        registers={},
        parameters=0,
    )
    multiply(tasks, 2000, 0)
    assert order_of_work(tasks) == "A" * 7 + "M"


def test_a_result_is_written_before_its_rows_are_read_again() -> None:
    """A read of host memory never passes a write that waits for the activation unit."""
    tasks = TaskList(CONFIG)
    for index in range(6):
        activate(tasks, 64 * index, 1000)
    tasks.write(1000, 0, 64)
    multiply(tasks, 2000, 0)
    tasks.read(1000, 4096, 64)
    multiply(tasks, 1000, 1)
    order = opcodes(tasks)
    assert order.index(Opcode.WRITE_HOST_MEMORY) < order.index(Opcode.READ_HOST_MEMORY)


@pytest.mark.parametrize(("rows", "overtakes"), [(64, False), (600, True), (1400, False)])
def test_a_read_overtakes_one_that_must_wait(rows: int, overtakes: bool) -> None:
    """If it is long, and done before the other one is needed: while the array works on 1,280 rows."""
    tasks = TaskList(CONFIG)
    tasks.read(0, 0, 64)
    for tile in range(20):
        multiply(tasks, 0, tile)
    tasks.read(0, 4096, 64)
    multiply(tasks, 0, 20)
    tasks.read(100, 8192, rows)
    multiply(tasks, 100, 21)
    instructions = list_schedule(tasks.tasks, CONFIG).instructions
    reads = [item["host"] for item in instructions if item.word & 0xFF == Opcode.READ_HOST_MEMORY]
    assert reads == ([0, 8192, 4096] if overtakes else [0, 4096, 8192])
