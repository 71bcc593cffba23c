"""Instructions before they are woven together: what each does, touches and roughly takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, host_extent, table_rows
from openmxu.arch.isa import REGISTERS, Format, Instruction, Register, Unit, format_named
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.compiler.plan.staging import fetch_cycles, load_cycles, row_cycles, table_cycles

__all__ = ["LoadedTile", "Rows", "Task", "TaskList", "WeightTile"]

_READ = format_named("Read_Host_Memory")
_READ_ALTERNATE = format_named("Read_Host_Memory_Alternate")
_WRITE = format_named("Write_Host_Memory")
_WRITE_ALTERNATE = format_named("Write_Host_Memory_Alternate")
_MULTIPLY = format_named("MatrixMultiply")
_CONVOLVE = format_named("Convolve")
_ACTIVATE = format_named("Activate")
_SET = format_named("Set_Configuration")


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows of a memory from ``first`` on; of host memory, bytes."""

    first: int
    count: int

    @property
    def slice(self) -> slice:
        """For an array with an element for each row."""
        return slice(self.first, self.first + self.count)

    def meets(self, other: Rows) -> bool:
        """Whether there is a row in both."""
        return self.first < other.first + other.count and other.first < self.first + self.count


@dataclass(frozen=True, slots=True)
class WeightTile:
    """Number of a tile in weight memory, and how its bytes are read."""

    number: int
    format: ByteFormat


@dataclass(frozen=True, slots=True)
class LoadedTile:
    """Rows of the unified buffer as a weight tile, and how their bytes are read."""

    rows: Rows
    transposed: bool
    format: ByteFormat


@dataclass(frozen=True, slots=True)
class Task:
    """One instruction for a unit.

    Attributes
    ----------
    registers
        Fields of the configuration registers that it depends on.
    reads, writes
        Unified buffer rows.
    accumulators, host
        Accumulator rows and host memory bytes, if any.
    cycles
        For which it keeps its unit busy, roughly.
    tile
        The weight tile that it takes, if any.
    layer
        Number of the operation that it is part of.
    passed
        Rows that the array takes in all passes.
    holds_bank
        They all lie in one bank of the unified buffer, and hold up others that read rows there.
    """

    unit: Unit
    instruction: Instruction
    cycles: int
    registers: Mapping[Register, Mapping[str, int]] = field(default_factory=dict)
    reads: tuple[Rows, ...] = ()
    writes: tuple[Rows, ...] = ()
    accumulators: Rows | None = None
    host: Rows | None = None
    tile: WeightTile | LoadedTile | None = None
    layer: int = 0
    passed: int = 0
    holds_bank: bool = False


class TaskList:
    """Collects tasks in an order in which they would be right one after the other.

    ``layer`` is the number of the operation that tasks are added for.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._host_cycles = row_cycles(config)
        self.tasks: list[Task] = []
        self.layer = 0

    def read(self, unified_buffer: int, host: int, rows: int, stride: int | None = None) -> None:
        """Rows of host memory, ``stride`` bytes apart if they are not contiguous, to the unified buffer."""
        touched = {"writes": (Rows(unified_buffer, rows),)}
        self._transfer(Unit.HOST_READ, (_READ, _READ_ALTERNATE), unified_buffer, host, rows, stride, touched)

    def write(self, unified_buffer: int, host: int, rows: int, stride: int | None = None) -> None:
        """Rows of the unified buffer to host memory, ``stride`` bytes apart if they are not to be contiguous."""
        touched = {"reads": (Rows(unified_buffer, rows),)}
        self._transfer(Unit.HOST_WRITE, (_WRITE, _WRITE_ALTERNATE), unified_buffer, host, rows, stride, touched)

    def _transfer(
        self,
        unit: Unit,
        formats: tuple[Format, Format],
        unified_buffer: int,
        host: int,
        rows: int,
        stride: int | None,
        touched: Mapping[str, tuple[Rows, ...]],
    ) -> None:
        size = self._config.size
        is_contiguous = rows == 1 or stride in (None, size)
        registers = {} if is_contiguous else {Register.HOST_STRIDE: {"stride": stride}}
        instruction = formats[not is_contiguous](unified_buffer=unified_buffer, host=host, rows=rows)
        bytes_ = Rows(host, rows * size if is_contiguous else host_extent(rows, size, stride))
        self._add(unit, instruction, rows * self._host_cycles, registers=registers, host=bytes_, **touched)

    def _add(self, unit: Unit, instruction: Instruction, cycles: int, **rest: Any) -> None:
        self.tasks.append(Task(unit, instruction, cycles, layer=self.layer, **rest))

    def multiply(
        self,
        *,
        source: Rows,
        accumulators: Rows,
        accumulate: bool,
        tile: WeightTile | LoadedTile | None,
        registers: Mapping[Register, Mapping[str, int]],
        wide: bool = False,
    ) -> None:
        """MatrixMultiply of ``source`` by the next tile, or by the one in the array where ``tile`` is ``None``.

        ``wide`` inputs are int16: as many rows of low and of high bytes, which pass the array one after the other.
        """
        instruction = _MULTIPLY(
            unified_buffer=source.first,
            accumulator=accumulators.first,
            rows=accumulators.count,
            accumulate=accumulate,
            next_tile=tile is not None,
            wide_input=wide,
        )
        self._matrix(instruction, source, accumulators, tile, registers, wide, stride=1)

    def convolve(
        self,
        *,
        source: Rows,
        accumulators: Rows,
        accumulate: bool,
        tile: WeightTile | None,
        registers: Mapping[Register, Mapping[str, int]],
        wide: bool = False,
        **geometry: int,
    ) -> None:
        """Convolve the plane in ``source``; ``geometry``: ``height`` and ``width`` of the output, ``dy``, ``dx``.
        ``wide`` as in :meth:`multiply`."""
        instruction = _CONVOLVE(
            unified_buffer=source.first,
            accumulator=accumulators.first,
            accumulate=accumulate,
            next_tile=tile is not None,
            wide_input=wide,
            **geometry,
        )
        stride = registers[Register.CONVOLUTION_PLANE]["stride_x"]
        self._matrix(instruction, source, accumulators, tile, registers, wide, stride=stride)

    def _matrix(
        self,
        instruction: Instruction,
        source: Rows,
        accumulators: Rows,
        tile: WeightTile | LoadedTile | None,
        registers: Mapping[Register, Mapping[str, int]],
        wide: bool,
        *,
        stride: int,
    ) -> None:
        passed = accumulators.count * (1 + wide)
        self._add(
            Unit.MATRIX,
            instruction,
            max(passed, self._tile_cycles(tile)),
            registers=registers,
            reads=(source, tile.rows) if isinstance(tile, LoadedTile) else (source,),
            accumulators=accumulators,
            tile=tile,
            passed=passed,
            holds_bank=(stride << wide) % self._config.unified_buffer_banks == 0,
        )

    def _tile_cycles(self, tile: WeightTile | LoadedTile | None) -> int:
        """Cycles in which a tile comes, and shifts in."""
        if tile is None:
            return 1
        size = self._config.size
        return size if isinstance(tile, LoadedTile) else max(size, fetch_cycles(self._config))

    def add_loaded(self, task: Task, tile: LoadedTile) -> None:
        """A multiplication that has been made for a tile of weight memory, with a tile of the unified buffer."""
        cycles = max(task.passed, self._tile_cycles(tile))
        self.tasks.append(dataclasses.replace(task, tile=tile, reads=(*task.reads, tile.rows), cycles=cycles))

    def activate(
        self,
        *,
        source: Rows,
        from_unified_buffer: bool,
        target: Rows,
        results: int,
        positions: int,
        operand_rows: Rows | None,
        registers: Mapping[Register, Mapping[str, int]],
        table: int | None = None,
        **fields: int,
    ) -> None:
        """Activate of ``results`` results of ``positions`` positions each, looked up in a table if it has a number;
        ``fields`` are the others of the instruction."""
        lookup = {} if table is None else {"table": 1, "table_number": table}
        instruction = _ACTIVATE(
            from_unified_buffer=from_unified_buffer,
            source=source.first,
            unified_buffer=target.first,
            rows=results,
            **lookup,
            **fields,
        )
        reads = (*((source,) if from_unified_buffer else ()), *((operand_rows,) if operand_rows is not None else ()))
        passes = 1 if operand_rows is None else 2
        self._add(
            Unit.ACTIVATION,
            instruction,
            max(results * positions, target.count) * passes * self._config.column_groups,
            registers=registers,
            reads=reads,
            writes=(target,),
            accumulators=None if from_unified_buffer else source,
        )

    def configure(self, register: Register, **values: int) -> None:
        """A load of parameter sets or of the table, which the activation unit does in its turn."""
        rows, cycles = table_rows(self._config.size), table_cycles(self._config)
        if register is Register.LOAD_PARAMETERS:
            rows, cycles = PARAMETER_ROWS * values["count"], load_cycles(self._config, values["count"])
        instruction = _SET(register=register, value=REGISTERS[register].pack(**values))
        source = Rows(values["unified_buffer"], rows)
        self._add(Unit.ACTIVATION, instruction, cycles, reads=(source,))
