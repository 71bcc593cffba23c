"""Recurrent cells as tasks."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from openmxu.arch.effects import TABLES, table_rows
from openmxu.arch.isa import Operand, OutputFormat, Register
from openmxu.compiler.emit.strip import Machine
from openmxu.compiler.emit.tasks import Rows, WeightTile
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.compiler.plan.buffers import HostPlace
from openmxu.compiler.plan.staging import load_cycles, table_cycles
from openmxu.compiler.recurrent.block_order import block_order
from openmxu.compiler.recurrent.cell import INPUT, Recurrent, Step
from openmxu.compiler.recurrent.constants import CLEAR, COPY, set_numbers
from openmxu.compiler.recurrent.layout import Layout, Product, local_values, products, step_passes, tiles

__all__ = ["CellTasks"]

_WEIGHTS = ByteFormat(True, 0)

_Emission = tuple[int, Callable[[], object]]
"""Cycles that something takes, roughly, and what emits it."""


@dataclass(frozen=True)
class _Job:
    """A block of one phase of one step of one part: its sums, and the steps that use them up."""

    number: int
    step: int
    phase: int
    part: int
    block: int


@dataclass
class CellTasks:
    """Makes the tasks of one cell for some images of the batch.

    Parameters
    ----------
    index
        The operation's number.
    layout
        With ``base`` added, its places are unified buffer rows; those of values that are kept lie in ``kept``.
    first_tile
        Number of its first weight tile in weight memory.
    tables
        Addresses in host memory.
    places
        Tensors in host memory.
    length
        Steps of a sequence.
    steps
        Those that tasks are made for, from the first one on.
    first_image
        Of the batch.
    """

    index: int
    operation: Recurrent
    layout: Layout
    base: int
    kept: Mapping[str, int]
    machine: Machine
    first_tile: int
    tables: tuple[int, ...]
    places: Mapping[str, HostPlace]
    length: int
    steps: int
    first_image: int
    images: int
    _products: dict[tuple[int, int, bool], list[tuple[Product, int | None]]] = field(default_factory=dict)
    _read: int = -1

    def __post_init__(self) -> None:
        self._local = local_values(self.operation)
        self._sets = set_numbers(self.operation)
        self._table_numbers = {table.tobytes(): number for number, table in enumerate(self.operation.tables)}
        self._config = self.machine.config
        self._size = self._config.size
        self._parts = [
            range(part.start, min(part.stop, self.images)) for part in self.layout.parts if part.start < self.images
        ]
        number = self.first_tile
        for phase, blocks in enumerate(self.layout.blocks):
            for block, part in enumerate(blocks):
                for early, found in zip((True, False), products(self.operation, phase, part, self._size), strict=True):
                    numbered = []
                    for product in found:
                        numbered.append((product, None if product.reuses else number))
                        number += not product.reuses
                    self._products[phase, block, early] = numbered

    def run(self) -> None:
        """All steps: while one job is activated, as much of the next one as does not need it is summed up."""
        jobs = list(self._jobs())
        for _, emit in self._summations(jobs[0], True):
            emit()
        self._begin()
        _interleave(self._loads(jobs[0]), self._summations(jobs[0], False))
        for job, following in zip(jobs, [*jobs[1:], None], strict=True):
            beside: list[_Emission] = []
            behind: list[_Emission] = []
            if following is not None:
                beside += self._summations(following, True)
                (behind if self._needs(following, job) else beside).extend(self._summations(following, False))
            activations = list(self._activations(job))
            if following is not None:
                activations += self._loads(following)
            _interleave(activations, beside)
            for _, emit in behind:
                emit()
        self._end()

    def _jobs(self) -> Iterator[_Job]:
        numbers = itertools.count()
        if len(self._parts) == 1:
            order = [(phase, 0, block) for phase, block in block_order(self.operation, self.layout.blocks)]
        else:
            order = [
                (phase, part, block)
                for phase, blocks in enumerate(self.layout.blocks)
                for part in range(len(self._parts))
                for block in range(len(blocks))
            ]
        for step in range(self.steps):
            for phase, part, block in order:
                yield _Job(next(numbers), step, phase, part, block)

    def _needs(self, job: _Job, before: _Job) -> bool:
        """Whether the array must wait for values that another job, the one before, makes."""
        phases = self.operation.phases
        if job.part != before.part or (job.step, job.phase) == (before.step, before.phase):
            return False
        made = {step.target for step in phases[before.phase].steps}
        if any(value in made for item in phases[job.phase].sums for value in item.weights):
            return True
        block, other = self.layout.blocks[job.phase][job.block], self.layout.blocks[before.phase][before.block]
        overlap = block.start < other.stop and other.start < block.stop
        return overlap and any(value in made for item in phases[job.phase].sums for value in item.factors)

    def _place(self, name: str, index: int = 0) -> int:
        """First row of one of a value's places."""
        if index == 0 and name in self.kept:
            return self.kept[name]
        return self.base + self.layout.places[name][index]

    def _position(self, step: int) -> int:
        """Where in the sequence a step is."""
        return self.length - 1 - step if self.operation.reverse else step

    def _rows(self, name: str, part: int, some: range, index: int = 0, block: range = range(0)) -> Rows:
        """The rows of a value for some output tiles of a part.

        Values lie part after part and tile after tile; local ones only for the tiles of the current ``block``.
        """
        images, item = self._parts[part], self.operation.formats[name].item
        length = len(images)
        if name in self._local:
            before = (some.start - block.start) * length
        else:
            before = tiles(self.operation, self._size) * images.start + some.start * length
        return Rows(self._place(name, index) + before * item, len(some) * length * item)

    def _buffer(self, name: str, step: int) -> int:
        """Which of its places a value has at the beginning of a step."""
        return step % len(self.layout.places[name])

    # What is there before the first step, and what is left behind the last one.

    def _begin(self) -> None:
        operation, tasks = self.operation, self.machine.tasks
        rows = table_rows(self._size)
        for number, address in enumerate(self.tables):
            tasks.read(self._table(number), address, rows)
        for name in operation.carried:
            if name in operation.initial:
                self._exchange(name, operation.initial[name], 0, tasks.read)
            elif name not in operation.kept and name not in operation.derived:
                self._clear(name)
        everything = range(tiles(operation, self._size))
        for step in operation.prologue:
            for part in range(len(self._parts)):
                self._activate(step, part, everything)

    def _loads(self, job: _Job) -> list[_Emission]:
        """Loads of the parameters of a job's steps and of their tables, as far as they are not there, and not where
        they would take the place of others that are used again."""
        block = self.layout.blocks[job.phase][job.block]
        sets, numbers = dict[int, None](), dict[int, None]()
        for step in self.operation.phases[job.phase].steps:
            first, distance = self._sets[step.target]
            sets |= dict.fromkeys(first + distance * tile for tile in block)
            if step.result.table is not None:
                numbers[self._table_numbers[step.result.table.tobytes()]] = None
        tables, parameters = self.machine.tables, self.machine.parameters
        loads: list[_Emission] = []
        if len(self.tables) <= TABLES:
            cycles = table_cycles(self._config)
            missing = [number for number in numbers if not tables.holds(self.index, number)]
            loads += [(cycles, functools.partial(self._load_table, number)) for number in missing]
        if self.length == 1 or parameters.has_room(self.index):
            cycles = load_cycles(self._config, 1)
            missing = [number for number in sets if not parameters.holds(self.index, number)]
            loads += [(cycles, functools.partial(parameters.require, self.index, number)) for number in missing]
        return loads

    def _load_table(self, number: int) -> int:
        """The number under which the activation unit holds a table of the cell."""
        return self.machine.tables.load(self.index, number, self._table(number))

    def _end(self) -> None:
        operation, tasks = self.operation, self.machine.tasks
        for name in operation.carried:
            index = self._buffer(name, self.length)
            if name in operation.final:
                self._exchange(name, operation.final[name], index, tasks.write)
            if name in operation.kept and index:
                self._fill(COPY, name, Rows(self._place(name, index), self._extent(name)))

    def _extent(self, name: str) -> int:
        return tiles(self.operation, self._size) * self.images * self.operation.formats[name].item

    def _exchange(self, name: str, tensor: str, index: int, transfer: Callable[[int, int, int], None]) -> None:
        """Transfer a carried value from or to host memory, where its planes hold the whole batch, or one image that
        stands for all."""
        place, item = self.places[tensor], self.operation.formats[name].item
        for part, images in enumerate(self._parts):
            for tile in range(tiles(self.operation, self._size)):
                rows = self._rows(name, part, range(tile, tile + 1), index)
                is_shared = place.images == 1
                element = tile * place.images + (0 if is_shared else self.first_image + images.start)
                address, step = place.address + element * item * self._size, item if is_shared else rows.count
                for first in range(rows.first, rows.first + rows.count, step):
                    transfer(first, address, step)

    def _clear(self, name: str) -> None:
        """Make a carried value 0; accumulators are as good a source as any."""
        rows = self._extent(name)
        for start in range(0, rows, self._config.accumulator_rows):
            count = min(self._config.accumulator_rows, rows - start)
            self._fill(CLEAR, name, Rows(0, count), start)

    def _fill(self, set_number: int, name: str, source: Rows, start: int = 0) -> None:
        """Write a value's first place byte by byte: zeros, or what lies in another place."""
        from_buffer = set_number == COPY
        registers = {Register.OUTPUT_FORMAT: {"zero_point": 0, "minimum": -128, "maximum": 127}}
        if from_buffer:
            registers[Register.SOURCE_FORMAT] = {"signed": True, "wide": False, "zero_point": 0}
        self.machine.tasks.activate(
            source=source,
            from_unified_buffer=from_buffer,
            target=Rows(self._place(name) + start, source.count),
            results=source.count,
            positions=1,
            operand_rows=None,
            registers=registers,
            parameters=self.machine.parameters.require(self.index, set_number),
            output=OutputFormat.BYTE,
        )

    def _table(self, number: int) -> int:
        return self._place("tables") + number * table_rows(self._size)

    # Sums.

    def _summations(self, job: _Job, early: bool) -> list[_Emission]:
        """The multiplications of a job by the input, or by the cell's values."""
        cycles = max(len(self._parts[job.part]), self._size)
        return [
            (cycles, functools.partial(self._multiply, job, product, number))
            for product, number in self._products[job.phase, job.block, early]
        ]

    def _multiply(self, job: _Job, product: Product, number: int | None) -> None:
        operation = self.operation
        rows = len(self._parts[job.part])
        if product.value == INPUT:
            registers = {"signed": operation.input_signed, "zero_point": operation.zero_point}
            source = self._input(job, product.plane)
        else:
            plane = range(product.plane, product.plane + 1)
            source = self._rows(product.value, job.part, plane, self._buffer(product.value, job.step))
            registers = {"signed": operation.formats[product.value].signed, "zero_point": 0}
        self.machine.tasks.multiply(
            source=source,
            accumulators=Rows(self._sum(job, product.sum, product.tile), rows),
            accumulate=not product.is_first,
            tile=None if number is None else WeightTile(number, _WEIGHTS),
            registers={Register.INPUT_FORMAT: registers},
        )

    def _sum(self, job: _Job, number: int, tile: int) -> int:
        """First accumulator row of a sum of one output tile; consecutive jobs use one half of the rows each."""
        block = self.layout.blocks[job.phase][job.block]
        place = number * len(block) + tile - block.start
        return job.number % 2 * (self._config.accumulator_rows // 2) + place * len(self._parts[job.part])

    def _input(self, job: _Job, plane: int) -> Rows:
        """The rows of a plane of the input of a step, read when they are needed first."""
        images = self._parts[job.part]
        turn = job.step * len(self._parts) + job.part
        planes = self.layout.input_planes
        first = self._place(INPUT) + turn % self.layout.input_slots * planes * self.layout.part_rows
        if turn > self._read:
            self._read = turn
            place = self.places[self.operation.sources[0]]
            for index in range(planes):
                element = (index * place.images + self.first_image + images.start) * self.length
                element += self._position(job.step)
                self.machine.tasks.read(
                    first + index * len(images),
                    place.address + element * self._size,
                    len(images),
                    stride=self.length * self._size,
                )
        return Rows(first + plane * len(images), len(images))

    # Activations.

    def _activations(self, job: _Job) -> Iterator[_Emission]:
        """The steps of a job, each for all of the block's tiles, and the writes of what leaves."""
        operation = self.operation
        block = self.layout.blocks[job.phase][job.block]
        for step in operation.phases[job.phase].steps:
            for some in [block] if step.is_uniform else [range(tile, tile + 1) for tile in block]:
                results = len(some) * len(self._parts[job.part])
                cycles = results * step_passes(step, operation) * self._config.column_groups
                yield cycles, functools.partial(self._activate, step, job.part, some, job)
            if step.target == operation.hidden and operation.sequence is not None:
                yield 0, functools.partial(self._write, job, block)

    def _write(self, job: _Job, block: range) -> None:
        """Write what a step has made of the sequence."""
        place, images = self.places[self.operation.sequence], self._parts[job.part]
        index = self._buffer(self.operation.hidden, job.step + 1)
        for tile in block:
            rows = self._rows(self.operation.hidden, job.part, range(tile, tile + 1), index)
            element = (tile * place.images + self.first_image + images.start) * self.length
            element += self._position(job.step)
            address = place.address + element * self._size
            self.machine.tasks.write(rows.first, address, rows.count, stride=self.length * self._size)

    def _activate(self, step: Step, part: int, some: range, job: _Job | None = None) -> None:
        """One step for some tiles of a part; without a job it makes what the first step of the sequence finds."""
        operation, machine, result = self.operation, self.machine, step.result
        formats = operation.formats
        before, behind, block = 0, 0, range(0)
        if job is not None:
            before, behind, block = job.step, job.step + 1, self.layout.blocks[job.phase][job.block]
        registers = {
            Register.OUTPUT_FORMAT: {
                "zero_point": result.zero_point,
                "minimum": result.minimum,
                "maximum": result.maximum,
            }
        }

        def read(name: str, register: Register) -> Rows:
            format = formats[name]
            registers[register] = {"signed": format.signed, "wide": format.wide, "zero_point": 0}
            return self._rows(name, part, some, self._buffer(name, before), block)

        from_buffer = step.source in formats
        if from_buffer:
            source = read(step.source, Register.SOURCE_FORMAT)
        else:
            names = [item.name for item in operation.phases[job.phase].sums]
            rows = len(some) * len(self._parts[part])
            source = Rows(self._sum(job, names.index(step.source), some.start), rows)
        operand, mode = None, Operand.NONE
        if step.operand is not None:
            operand = read(step.operand, Register.OPERAND_FORMAT)
            registers[Register.OPERAND_ADDRESS] = {"unified_buffer": operand.first}
            mode = Operand.MULTIPLY
            if not step.multiplies:
                mode = Operand.ADD
                registers[Register.OPERAND_SCALE] = {"scale": int(np.float32(step.operand_scale).view(np.uint32))}
        first_set, distance = self._sets[step.target]
        parameters = machine.parameters.require(self.index, first_set + distance * some.start)
        table = None
        if result.table is not None:
            number = self._table_numbers[result.table.tobytes()]
            table = self._load_table(number)
        machine.tasks.activate(
            source=source,
            from_unified_buffer=from_buffer,
            target=self._rows(step.target, part, some, self._buffer(step.target, behind), block),
            results=len(some) * len(self._parts[part]),
            positions=step_passes(step, operation),
            operand_rows=operand,
            registers=registers,
            parameters=parameters,
            output=OutputFormat.WORD if formats[step.target].wide else OutputFormat.BYTE,
            table=table,
            operand=mode,
        )


def _interleave(first: list[_Emission], second: list[_Emission]) -> None:
    """Emit two sequences side by side, neither ahead of the other in its share of cycles.

    The dispatcher stops at a unit whose queue is full, so that one sequence behind the other would not overlap.
    """
    totals = [max(1, sum(cycles for cycles, _ in items)) for items in (first, second)]
    done, queues = [0, 0], [iter(first), iter(second)]
    waiting = [next(queue, None) for queue in queues]
    while any(item is not None for item in waiting):
        shares = [done[index] / totals[index] if waiting[index] is not None else 2.0 for index in range(2)]
        # The array first: what it makes is used later.
        index = 1 if shares[1] <= shares[0] else 0
        cycles, emit = waiting[index]
        emit()
        done[index] += cycles
        waiting[index] = next(queues[index], None)
