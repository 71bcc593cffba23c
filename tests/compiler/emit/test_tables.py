"""Tables of the activation unit are loaded when they are not there any more, and only then."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLES
from openmxu.arch.isa import REGISTERS, Opcode, Register
from openmxu.compiler.emit.strip import Tables
from openmxu.compiler.emit.tasks import TaskList

STAGING, SIZE = 40, 8


def tables_of(operations: int) -> tuple[TaskList, Tables]:
    tasks = TaskList(Config.for_size(SIZE))
    addresses = {(operation, 0): 4096 + 256 * operation for operation in range(operations)}
    return tasks, Tables(tasks, STAGING, addresses, SIZE)


def loads(tasks: TaskList) -> list[tuple[int, int]]:
    """Unified buffer row and number of the table, for each load."""
    values = [
        REGISTERS[Register.LOAD_TABLE].unpack(task.instruction["value"])
        for task in tasks.tasks
        if task.instruction.opcode is Opcode.SET_CONFIGURATION
    ]
    return [(value["unified_buffer"], value["number"]) for value in values]


def test_as_many_stay_as_there_is_room_for() -> None:
    tasks, tables = tables_of(TABLES)
    for _ in range(3):
        assert [tables.require(operation) for operation in range(TABLES)] == list(range(TABLES))
    assert loads(tasks) == [(STAGING, number) for number in range(TABLES)]
    reads = [task.instruction["host"] for task in tasks.tasks if task.instruction.opcode is Opcode.READ_HOST_MEMORY]
    assert reads == [4096 + 256 * operation for operation in range(TABLES)]


def test_the_one_that_was_not_used_for_the_longest_time_goes() -> None:
    tasks, tables = tables_of(TABLES + 1)
    for operation in range(TABLES):
        tables.require(operation)
    tables.require(0)
    assert tables.require(TABLES) == 1
    assert tables.require(0) == 0
    assert tables.require(1) == 2
    assert [number for _, number in loads(tasks)] == [*range(TABLES), 1, 2]


def test_tables_in_the_unified_buffer_are_loaded_from_there() -> None:
    tasks, tables = tables_of(1)
    assert [tables.load(3, number, 100 + number) for number in (0, 1, 0)] == [0, 1, 0]
    assert loads(tasks) == [(100, 0), (101, 1)]
    assert len(tasks.tasks) == 2
