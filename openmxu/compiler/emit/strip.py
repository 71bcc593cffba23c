"""Work on one strip: its buffers, what is read into them and written from them, and what the activation unit needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLES, table_rows
from openmxu.arch.isa import OutputFormat, Register
from openmxu.compiler.emit.deferred_activations import Touch
from openmxu.compiler.emit.emitter import ParameterSets
from openmxu.compiler.emit.tasks import Rows, TaskList
from openmxu.compiler.ir.operations import Operation, Result
from openmxu.compiler.plan.buffers import Buffer, HostPlace
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles

__all__ = ["Elements", "Machine", "Strip", "Tables", "has_table"]

Elements = tuple[str, int, int]
"""Name of a tensor, its first element, and the number of them."""

_READ_ROWS = 32
"""Rows that one Read_Host_Memory should have, where planes with fewer rows lie next to each other."""

_WAYS = 8
"""Lengths of the array, of whose edges a row passes two on its way; fewer sums than that are short beside the way."""

_OUTPUTS = {1: OutputFormat.BYTE, 2: OutputFormat.WORD, 4: OutputFormat.INT32}
"""By the bytes of an element."""

_WRITE_ROWS = 16
"""Rows that one Write_Host_Memory should have, where planes with fewer rows lie next to each other."""


class Tables:
    """Loads tables shortly before they are used, over those that have not been used for the longest time.

    Parameters
    ----------
    staging
        First of the unified buffer rows where tables wait to be loaded.
    addresses
        In host memory, by the number of the operation and the table's number in it.
    """

    def __init__(self, tasks: TaskList, staging: int, addresses: Mapping[tuple[int, int], int], size: int) -> None:
        self._tasks = tasks
        self._staging = staging
        self._addresses = addresses
        self._rows = table_rows(size)
        self._held: dict[tuple[int, int], int] = {}

    def require(self, operation: int) -> int:
        """The number under which the activation unit holds the only table of operation number ``operation``."""
        if (operation, 0) not in self._held:
            self._tasks.read(self._staging, self._addresses[operation, 0], self._rows)
        return self.load(operation, 0, self._staging)

    def holds(self, operation: int, number: int) -> bool:
        """Whether the activation unit holds a table."""
        return (operation, number) in self._held

    def load(self, operation: int, number: int, unified_buffer: int) -> int:
        """Likewise for a table that lies in the unified buffer already."""
        key = operation, number
        held = self._held.pop(key, None)
        if held is None:
            held = len(self._held) if len(self._held) < TABLES else self._held.pop(next(iter(self._held)))
            self._tasks.configure(Register.LOAD_TABLE, unified_buffer=unified_buffer, number=held)
        self._held[key] = held
        return held


@dataclass
class Machine:
    """What all strips share: the tasks, and what the activation unit and the accumulators hold."""

    config: Config
    tasks: TaskList
    parameters: ParameterSets
    tables: Tables
    _next_sums: int = 0
    _turn: int = 0

    def __post_init__(self) -> None:
        self._turns = np.zeros(self.config.accumulator_rows, np.int64)  # when each row was taken last

    def take_sums(self, count: int) -> int:
        """The first of ``count`` accumulator rows, those that have waited longest.

        Sums of which two have room and not three begin a half where they can: if they differ in length, the second one
        after the last could otherwise need a row of it, and wait for its way through the array and for its activation.
        With arrays so small that this way is short, what fits in between counts more.
        """
        rows = self.config.accumulator_rows
        is_far = count < _WAYS * self.config.size
        halves = [rows // 2] if is_far and 2 * count <= rows < 3 * count else []
        places = [first for first in (*halves, self._next_sums, 0) if first + count <= rows]
        first = min(places, key=lambda place: int(self._turns[place : place + count].max()))
        self._turns[first : first + count] = self._turn = self._turn + 1
        self._next_sums = first + count
        return first


@dataclass
class Strip:
    """A strip of a group.

    Attributes
    ----------
    buffers
        Of all tensors, by name.
    sources, targets
        Those tensors that are read from host memory and written there.
    """

    machine: Machine
    buffers: Mapping[str, Buffer]
    sources: Mapping[str, HostPlace]
    targets: Mapping[str, HostPlace]
    _loaded: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    _waiting: Elements | None = None

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self.machine.config

    def touch(self, reads: Iterable[Elements], writes: Iterable[Elements]) -> Touch:
        """The rows that tasks touch which read and write such elements."""
        read = [self.buffers[name].rows(first, count) for name, first, count in reads]
        written = [self.buffers[name].rows(first, count) for name, first, count in writes]
        loaded = [rows for elements in reads for rows in self._loads(*elements)]
        return Touch(tuple(read), (*loaded, *written))

    def _loads(self, name: str, first: int, count: int) -> Iterator[Rows]:
        """The rows that :meth:`need` may write."""
        buffer = self.buffers[name]
        loaded = self._loaded.get(name, np.zeros(buffer.elements, np.bool_))
        if name in self.sources and not loaded[first : first + count].all():
            # Neighbours come along from wherever the first one is that is still missing then.
            most = count if count >= _READ_ROWS else count - 1 + _READ_ROWS
            yield buffer.rows(first, min(most, buffer.elements - first))

    def need(self, name: str, start: int, stop: int) -> None:
        """Read those elements of a tensor that have not been read yet."""
        place = self.sources.get(name)
        if place is None or start == stop:
            return
        buffer, loaded = self.buffers[name], self._loaded.get(name)
        if loaded is None:
            loaded = self._loaded[name] = np.zeros(buffer.elements, np.bool_)
        elif loaded[start:stop].all():
            return
        is_short = stop - start < _READ_ROWS
        for first, count, _ in buffer.runs(start, stop, place, self.config.size):
            missing = np.flatnonzero(~loaded[first : first + count])
            if missing.size == 0:
                continue
            first, last = first + int(missing[0]), first + int(missing[-1]) + 1
            # Neighbours come along where a plane has few rows.
            if is_short and (buffer.tensor.positions > 1 or buffer.plane_elements <= _READ_ROWS // 2):
                last = max(last, min(first + _READ_ROWS, buffer.elements))
            first, count, address = next(buffer.runs(first, last, place, self.config.size))
            for other in range(first % buffer.period, buffer.elements, buffer.period):
                loaded[other : other + count] = other == first
            rows = buffer.rows(first, count)
            if self._waits_in(rows):
                self.flush()
            self.machine.tasks.read(rows.first, address, rows.count)

    def made(self, name: str, start: int, stop: int) -> None:
        """Write elements that are complete, if they leave the unified buffer; few of them wait for their neighbours."""
        place = self.targets.get(name)
        if place is None:
            return
        buffer, waiting, count = self.buffers[name], self._waiting, stop - start
        if waiting is not None and waiting[0] == name and waiting[2] == start:
            start = waiting[1]
        else:
            self.flush()
        self._waiting = (name, start, stop)
        waiting_rows, left = buffer.rows(start, stop - start).count, buffer.elements - stop
        short = waiting_rows < _WRITE_ROWS and fetch_cycles(self.config) < _WRITE_ROWS
        # Short planes that lie next to each other here and there; the last one does not wait for many others.
        is_end = left == 0 or (left < _WRITE_ROWS // 4 and waiting_rows * row_cycles(self.config) >= _WRITE_ROWS // 2)
        if not short or buffer.ring or count < buffer.plane_elements or is_end:
            self.flush()

    def _waits_in(self, rows: Rows) -> bool:
        """Whether something in these rows waits to be written."""
        if self._waiting is None:
            return False
        name, start, stop = self._waiting
        return rows.meets(self.buffers[name].rows(start, stop - start))

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting is None:
            return
        name, start, stop = self._waiting
        self._waiting = None
        buffer = self.buffers[name]
        for first, count, address in buffer.runs(start, stop, self.targets[name], self.config.size):
            rows = buffer.rows(first, count)
            self.machine.tasks.write(rows.first, address, rows.count)

    def activate(
        self,
        index: int,
        operation: Operation,
        set_number: int,
        start: int,
        results: int,
        *,
        source: Rows,
        from_unified_buffer: bool,
        operand_rows: Rows | None = None,
        positions: int = 1,
        registers: Mapping[Register, Mapping[str, int]] | None = None,
        **fields: int,
    ) -> None:
        """Make ``results`` elements of an operation's target from ``start`` on, and write them.

        Parameters
        ----------
        index
            The operation's number.
        set_number
            Which of its parameter sets.
        positions
            Of the window that is pooled.
        registers, fields
            Of the instruction, beside those that every Activate needs.
        """
        if self._waiting is not None and self._waiting[0] != operation.target:
            self.flush()
        result, buffer = operation.result, self.buffers[operation.target]
        given = dict(registers or {})
        if result is not None:
            given[Register.OUTPUT_FORMAT] = {
                "zero_point": result.zero_point,
                "minimum": result.minimum,
                "maximum": result.maximum,
            }
        number = self.machine.parameters.require(index, set_number)
        table = self.machine.tables.require(index) if has_table(result) else None
        self.machine.tasks.activate(
            source=source,
            from_unified_buffer=from_unified_buffer,
            target=buffer.rows(start, results),
            results=results,
            positions=positions,
            operand_rows=operand_rows,
            registers=given,
            parameters=number,
            output=_OUTPUTS[buffer.tensor.item],
            table=table,
            **fields,
        )
        self.made(operation.target, start, start + results)


def has_table(result: Result | None) -> bool:
    """Whether results are looked up in a table."""
    return result is not None and result.table is not None
