"""From tasks in a right order to a program in a good one.

Every unit executes its instructions in order and waits by itself for what it needs, but the dispatcher takes
instructions one after the other and stops at a unit whose queue is full. So a read of host memory must come early
enough to be there when it is needed, and late enough not to fill the queue and hold back what follows. And what the
activation unit does, or the transfer of a result, must wait while the queue is full, so that the array's instructions
are not held back. A rough model of the machine decides: reads move ahead of other tasks, activations and writes move
behind multiplications, never past a task that touches the same rows, until the model's queue has room. Where the next
read has to wait and the unit is idle, a later one that is done in time overtakes it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.isa import Unit, format_named
from openmxu.compiler.emit.emitter import Code, Emitter, Load, WeightRun, WeightStream
from openmxu.compiler.emit.memory import ALIGNMENT
from openmxu.compiler.emit.tasks import LoadedTile, Task, WeightTile
from openmxu.compiler.plan.staging import fetch_cycles

__all__ = ["list_schedule"]

_DISPATCH_CYCLES = 6
_LATENCY = {Unit.HOST_READ: 10, Unit.HOST_WRITE: 0, Unit.MATRIX: 20, Unit.ACTIVATION: 40}
"""Cycles from the last row that a unit takes to the result that another unit can use."""

_HELD_UP = {Unit.ACTIVATION: 2, Unit.HOST_WRITE: 8}
"""How many times as long a unit reads rows of the unified buffer while the array reads rows of one bank alone, roughly:
others have that bank in padding and between multiplications."""

_AHEAD = 256
"""Reads among which one is looked for that can overtake those that must wait."""

_LONG_READ = 500
"""Cycles of a read that is worth to overtake others; short ones are done in time in their turn."""

_LOAD_WEIGHTS = format_named("Load_Weights")

_MOST_TILES = (1 << 24) - 1
"""Tiles of one Read_Weights."""


def list_schedule(tasks: Sequence[Task], config: Config, *, spare: int = 1) -> Code:
    """The program of the tasks, ended by Halt; weights are queued ahead of the multiplications that take them.

    Tasks wait until a unit's queue has room for ``spare`` more.
    """
    emitter = Emitter()
    machine = _Machine(config, spare)
    weights = WeightStream(emitter, config, _weight_runs(tasks), machine.load)
    earliest = _earliest(tasks, config)
    reads = deque(index for index, task in enumerate(tasks) if task.unit is Unit.HOST_READ)

    def emit(index: int) -> None:
        nonlocal configured
        task = tasks[index]
        is_emitted[index] = True
        emitter.layer = task.layer
        if task.tile is not None:
            weights.take(task.tile)
        if task.registers is not configured:
            for register, values in task.registers.items():
                emitter.configure(register, **values)
            configured = task.registers
        emitter.append(task.instruction)
        machine.dispatch(task)

    def let_go(until: int) -> None:
        """Emit deferred tasks with lower indices than ``until``, and others while there is room."""
        while deferred and (deferred[0] < until or machine.has_room(tasks[deferred[0]].unit)):
            emit(deferred.popleft())

    is_emitted = [False] * len(tasks)
    configured: object = None
    deferred: deque[int] = deque()
    # Cycles that the array works in front of each task, at least.
    worked = list(itertools.accumulate((task.passed for task in tasks), initial=0))
    if reads and reads[0] == 0:
        # The first input, then its weights, then the rest of the input.
        emit(reads.popleft())
        weights.begin()
    for index, task in enumerate(tasks):
        if task.unit is Unit.HOST_READ:
            if reads and reads[0] == index:
                let_go(earliest[index])
                emit(reads.popleft())
            continue
        passed = deferred[0] if deferred else index
        while reads and earliest[reads[0]] <= passed and machine.has_room(Unit.HOST_READ):
            emit(reads.popleft())
        while reads and machine.is_idle(Unit.HOST_READ):
            # The first one must wait. A long one may overtake it that will be done before the first one is needed.
            other = next((number for number in itertools.islice(reads, 1, _AHEAD) if earliest[number] <= passed), None)
            if other is None or not _LONG_READ <= tasks[other].cycles <= worked[reads[0]] - worked[index]:
                break
            reads.remove(other)
            emit(other)
        if task.unit is Unit.MATRIX:
            let_go(1 + max((other for other in deferred if _disturbs(task, tasks[other])), default=-1))
            emit(index)
            weights.load(is_emitted)
        else:
            deferred.append(index)
            let_go(0)
    let_go(len(tasks))
    emitter.halt()
    return emitter.code()


def _disturbs(product: Task, other: Task) -> bool:
    """Whether a matrix product must not come before an earlier task of another unit."""
    return any(rows.meets(written) for rows in product.reads for written in other.writes) or (
        other.accumulators is not None and product.accumulators.meets(other.accumulators)
    )


def _weight_runs(tasks: Sequence[Task]) -> list[WeightRun | Load]:
    """The tiles that tasks take one after the other, joined where they are neighbours in memory."""
    runs: list[WeightRun | Load] = []
    has_loads = any(isinstance(task.tile, LoadedTile) for task in tasks)
    written: dict[int, int] = {}
    for index, task in enumerate(tasks):
        if isinstance(task.tile, LoadedTile):
            rows = range(task.tile.rows.first, task.tile.rows.first + task.tile.rows.count)
            runs.append(Load(task.tile, max((written[row] for row in rows if row in written), default=None)))
        elif has_loads:
            written.update((row, index) for rows in task.writes for row in range(rows.first, rows.first + rows.count))
        if not isinstance(task.tile, WeightTile):
            continue
        number, format = task.tile.number, task.tile.format
        last = runs[-1] if runs else None
        if (
            isinstance(last, WeightRun)
            and last.format == format
            and last.first + last.tiles == number
            and last.tiles < _MOST_TILES
        ):
            runs[-1] = WeightRun(format, last.first, last.tiles + 1)
        else:
            runs.append(WeightRun(format, number, 1))
    return runs


def _earliest(tasks: Sequence[Task], config: Config) -> dict[int, int]:
    """For each read the index of the task that it may come before at the earliest: behind all that touch its rows."""
    touched = np.zeros(config.unified_buffer_rows, np.int64)
    # Tensors in host memory begin at multiples of ALIGNMENT: finer than that, nothing is shared by what matters here.
    written = np.zeros(1 + max((_blocks(task).stop for task in tasks if task.host is not None), default=0), np.int64)
    earliest = {}
    for index, task in enumerate(tasks):
        if task.unit is Unit.HOST_READ:
            (target,) = task.writes
            earliest[index] = max(int(touched[target.slice].max()), int(written[_blocks(task)].max()))
        elif task.unit is Unit.HOST_WRITE:
            written[_blocks(task)] = index + 1
        for rows in (*task.reads, *task.writes):
            touched[rows.slice] = index + 1
    return earliest


def _blocks(task: Task) -> slice:
    """The blocks of host memory that a transfer touches."""
    return slice(task.host.first // ALIGNMENT, -(-(task.host.first + task.host.count) // ALIGNMENT))


@dataclass
class _Machine:
    """When instructions would end, in cycles: in order in each unit, and behind what touches the same rows."""

    config: Config
    spare: int
    now: int = 0
    _fetched: int = 0
    _holds_bank: bool = False
    _taken: deque[int] = field(default_factory=deque)
    _ends: dict[Unit, deque[int]] = field(default_factory=lambda: {unit: deque() for unit in Unit})
    _busy: dict[Unit, int] = field(default_factory=lambda: dict.fromkeys(Unit, 0))

    def __post_init__(self) -> None:
        # Where a tile comes almost as fast as it is shifted in, the FIFO changes little.
        self._is_slow = fetch_cycles(self.config) > 2 * self.config.size
        # For each row when the last write to it, and the last other use of it, has ended.
        self._written = np.zeros(self.config.unified_buffer_rows, np.int64)
        self._used = np.zeros(self.config.unified_buffer_rows, np.int64)
        self._summed = np.zeros(self.config.accumulator_rows, np.int64)
        self._activated = np.zeros(self.config.accumulator_rows, np.int64)

    def _fetch(self) -> int:
        """When the next tile of weight memory has come; it may come as soon as the weight FIFO has room."""
        room = self._taken.popleft() if len(self._taken) == self.config.weight_fifo_tiles else 0
        self._fetched = max(self._fetched, room) + fetch_cycles(self.config)
        return self._fetched

    def has_room(self, unit: Unit) -> bool:
        """Whether the dispatcher would not have to wait for the unit."""
        running = sum(end > self.now for end in self._ends[unit])
        return running < self.config.command_queue_depth - self.spare

    def is_idle(self, unit: Unit) -> bool:
        """Whether the unit has nothing to do soon."""
        return self._busy[unit] <= self.now

    def load(self, tile: LoadedTile) -> None:
        """Take a Load_Weights, which the unit of host writes executes."""
        rows = tile.rows
        self.dispatch(Task(Unit.HOST_WRITE, _LOAD_WEIGHTS(unified_buffer=rows.first), rows.count, reads=(rows,)))

    def dispatch(self, task: Task) -> None:
        """Take the next instruction."""
        unit, ends = task.unit, self._ends[task.unit]
        self.now += _DISPATCH_CYCLES
        if len(ends) == self.config.command_queue_depth:
            self.now = max(self.now, ends.popleft())
        waits = [self.now, self._busy[unit]]
        waits += [self._written[rows.slice].max() for rows in (*task.reads, *task.writes)]
        waits += [self._used[rows.slice].max() for rows in task.writes]
        if task.accumulators is not None:
            # Multiplications follow each other through the same rows without waiting.
            other = self._activated if unit is Unit.MATRIX else self._summed
            waits.append(other[task.accumulators.slice].max())
        if isinstance(task.tile, WeightTile) and self._is_slow:
            start = max(*waits, self._fetch())
            self._taken.append(start)
            end = int(start) + max(task.passed, self.config.size)
        else:
            held_up = _HELD_UP.get(unit, 1) if self._holds_bank and task.reads else 1
            end = int(max(waits)) + held_up * task.cycles
        if unit is Unit.MATRIX:
            self._holds_bank = task.holds_bank
        self._busy[unit] = end
        end += _LATENCY[unit]
        ends.append(end)
        for rows in task.reads:
            self._used[rows.slice] = end
        for rows in task.writes:
            self._written[rows.slice] = end
        if task.accumulators is not None:
            own = self._summed if unit is Unit.MATRIX else self._activated
            own[task.accumulators.slice] = end
