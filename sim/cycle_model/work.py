"""The work of every instruction of a program: its unit, its accesses to memories, and its amount of work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import ACTION_EFFECTS, EFFECTS, PARAMETER_ROWS, Memory, Role, table_rows
from openmxu.arch.isa import Opcode, Operand, OutputFormat, Pooling, Register, Unit
from openmxu.sim.cycle_model.latencies import DISPATCH, PLANE
from openmxu.sim.cycle_model.words import Words

__all__ = ["Ranges", "Work"]

_MATRIX = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE)
_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_WRITING = (Role.READ_HOST_MEMORY, Role.RESULT)
"""Roles that write unified buffer rows."""

_TRANSFERS = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, *_ALTERNATE)

_Array = NDArray[np.int64]
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Ranges:
    """Rows or bytes from ``first`` up to, but not including, ``end``; ``used`` if an instruction touches any."""

    first: _Array
    end: _Array
    used: _Flags

    def meets(self, mine: _Array, other: Ranges, theirs: _Array) -> _Flags:
        """Whether the ranges of instructions ``mine`` overlap those that instructions ``theirs`` have in ``other``."""
        overlap = (self.first[mine] < other.end[theirs]) & (other.first[theirs] < self.end[mine])
        return overlap & self.used[mine] & other.used[theirs]


class Work:
    """Arrays with an element for each instruction; an element is meaningful only if its description applies to the
    instruction.

    Parameters
    ----------
    words
        A legal program.
    config
        The configuration of the core.
    """

    def __init__(self, words: Words, config: Config) -> None:
        self.words = words
        self.config = config
        self.is_matrix = words.is_(*_MATRIX)
        self.is_activate = words.is_(Opcode.ACTIVATE)
        self.is_transfer = words.is_(*_TRANSFERS)
        self.is_alternate = words.is_(*_ALTERNATE)
        self.is_convolve = words.is_(Opcode.CONVOLVE)
        self.loads_weights = words.is_(Opcode.LOAD_WEIGHTS)
        self.loads_parameters = words.sets(Register.LOAD_PARAMETERS)
        self.loads_table = words.sets(Register.LOAD_TABLE)
        self.is_load = self.loads_parameters | self.loads_table
        self.is_pooled = self.is_activate & (self._activate("pooling") != Pooling.NONE)
        self.from_unified_buffer = self.is_activate & (self._activate("from_unified_buffer") != 0)
        self.has_operand = self.is_activate & (self._activate("operand") != Operand.NONE)

    def _activate(self, name: str) -> _Array:
        return self.words.field(Opcode.ACTIVATE, name)

    def _matrix(self, name: str) -> _Array:
        """A field that MatrixMultiply and Convolve have at the same place."""
        return self.words.field(Opcode.MATRIX_MULTIPLY, name)

    @cached_property
    def unit(self) -> _Array:
        """Number of the :class:`~openmxu.arch.isa.Unit` that executes it; -1 for the dispatcher itself."""
        is_read = self.words.is_(Opcode.READ_HOST_MEMORY, Opcode.READ_HOST_MEMORY_ALTERNATE)
        return np.select(
            [
                is_read,
                self.is_transfer | self.loads_weights,
                self.words.is_(Opcode.READ_WEIGHTS),
                self.is_matrix,
                self.is_activate | self.is_load,
            ],
            [Unit.HOST_READ, Unit.HOST_WRITE, Unit.WEIGHT, Unit.MATRIX, Unit.ACTIVATION],
            -1,
        )

    @cached_property
    def check_cycles(self) -> _Array:
        """Cycles from taking the instruction to its hand-over, if nothing delays it."""
        has_plane = self.is_convolve | self.is_pooled
        bits = np.ceil(np.log2(self.rows.clip(1))).astype(np.int64)
        return DISPATCH + np.select([has_plane, self.is_alternate], [PLANE, bits.clip(1)], 0)

    @cached_property
    def synchronized(self) -> _Array:
        """One bit for each unit that a Synchronize waits for."""
        return self.words.field(Opcode.SYNCHRONIZE, "units")

    @cached_property
    def rows(self) -> _Array:
        """Rows of a transfer or a tile; rows that the matrix unit multiplies in a pass; results of Activate."""
        words = self.words
        outputs = words.field(Opcode.CONVOLVE, "height") * words.field(Opcode.CONVOLVE, "width")
        return np.select(
            [self.is_convolve, self.is_matrix, self.is_activate, self.loads_weights],
            [outputs, self._matrix("rows"), self._activate("rows"), self.config.size],
            words.field(Opcode.READ_HOST_MEMORY, "rows"),
        )

    @cached_property
    def stride(self) -> _Array:
        """Bytes from row to row of a transfer in host memory."""
        return np.where(self.is_alternate, self.words.register(Register.HOST_STRIDE, "stride"), self.config.size)

    # The matrix unit

    @cached_property
    def wide_input(self) -> _Flags:
        """Two passes for each byte of the weights."""
        return self.is_matrix & (self._matrix("wide_input") != 0)

    @cached_property
    def wide_weights(self) -> _Flags:
        """Twice as many passes, and two tiles."""
        return self.is_matrix & (self._matrix("wide_weights") != 0)

    @cached_property
    def tiles(self) -> _Array:
        """Tiles that the matrix unit takes, or that a Read_Weights queues."""
        takes = (self._matrix("next_tile") != 0) * (1 + self.wide_weights)
        return np.where(self.is_matrix, takes, self.words.field(Opcode.READ_WEIGHTS, "tiles"))

    @cached_property
    def loaded_tiles(self) -> _Array:
        """How many of the tiles that the matrix unit takes come from Load_Weights."""
        queued = np.where(self.words.is_(Opcode.READ_WEIGHTS), self.tiles, 0) + self.loads_weights
        loaded = np.concatenate([[0], np.cumsum(np.repeat(self.loads_weights, queued))])
        taken, before = self.is_matrix * self.tiles, np.cumsum(queued) - queued
        first = np.cumsum(taken) - taken
        # Halt discards what is left.
        for start in np.flatnonzero(self.words.is_(Opcode.HALT))[:-1] + 1:
            first[start:] += before[start] - first[start]
        return loaded[np.minimum(first + taken, len(loaded) - 1)] - loaded[np.minimum(first, len(loaded) - 1)]

    @cached_property
    def transposed(self) -> _Flags:
        """A Load_Weights transposes its tile."""
        return self.loads_weights & (self.words.field(Opcode.LOAD_WEIGHTS, "transposed") != 0)

    @cached_property
    def accumulates(self) -> _Flags:
        """The first pass adds to the accumulators."""
        return self.is_matrix & (self._matrix("accumulate") != 0)

    # The activation unit

    @cached_property
    def positions(self) -> _Array:
        """Rows in the window of each result."""
        window = (self.words.register(Register.POOLING_WINDOW, name) for name in ("height", "width"))
        return np.where(self.is_pooled, np.multiply(*window), 1)

    @cached_property
    def result_bytes(self) -> _Array:
        """Unified buffer rows of a result."""
        output = self._activate("output")
        return np.select([output == OutputFormat.INT32, output == OutputFormat.WORD], [4, 2], 1)

    @cached_property
    def by_parity(self) -> _Flags:
        """Activate takes every other row of the accumulators first, then those between them."""
        is_plain = self.is_activate & ~self.is_pooled & ~self.from_unified_buffer & ~self.has_operand
        return is_plain & (self.result_bytes == 1) & (self.config.column_groups % 2 == 0)

    @cached_property
    def load_rows(self) -> _Array:
        """Unified buffer rows that a load of parameters or of the table reads."""
        parameters = PARAMETER_ROWS * self.words.register(Register.LOAD_PARAMETERS, "count")
        return np.where(self.loads_table, table_rows(self.config.size), parameters)

    @cached_property
    def source_wide(self) -> _Flags:
        """Activate reads two unified buffer rows for each position."""
        return self.from_unified_buffer & (self.words.register(Register.SOURCE_FORMAT, "wide") != 0)

    @cached_property
    def operand_wide(self) -> _Flags:
        """Activate reads two unified buffer rows for each element of the second operand."""
        return self.has_operand & (self.words.register(Register.OPERAND_FORMAT, "wide") != 0)

    # Touched rows and bytes, as the hardware's scoreboard compares them

    @cached_property
    def writes(self) -> _Flags:
        """The instruction writes its ``unified_buffer`` rows rather than reading them."""
        return self._touched(Memory.UNIFIED_BUFFER, *_WRITING).used

    @cached_property
    def unified_buffer(self) -> Ranges:
        """Rows that are written, or read by a transfer, the matrix unit or a load."""
        return self._touched(Memory.UNIFIED_BUFFER, *set(Role) - {Role.SOURCE, Role.OPERAND})

    @cached_property
    def source(self) -> Ranges:
        """Unified buffer rows that Activate has as its source."""
        return self._touched(Memory.UNIFIED_BUFFER, Role.SOURCE)

    @cached_property
    def operand(self) -> Ranges:
        """Unified buffer rows of Activate's second operand."""
        return self._touched(Memory.UNIFIED_BUFFER, Role.OPERAND)

    @cached_property
    def accumulators(self) -> Ranges:
        """Accumulator rows."""
        return self._touched(Memory.ACCUMULATORS, *Role)

    @cached_property
    def host(self) -> Ranges:
        """Bytes of host memory."""
        return self._touched(Memory.HOST, *Role)

    def _touched(self, memory: Memory, *roles: Role) -> Ranges:
        """The ranges of a memory that these roles touch, at most one for each instruction."""
        first, end = np.zeros((2, len(self.words)), np.int64)
        used = np.zeros(len(self.words), np.bool_)
        views = [(self.words.is_(opcode), _View(self, opcode), EFFECTS[opcode]) for opcode in EFFECTS]
        views += [
            (self.words.sets(register), _View(self, Opcode.SET_CONFIGURATION), ACTION_EFFECTS[register])
            for register in ACTION_EFFECTS
        ]
        for concerned, view, effects in views:
            for effect in effects:
                if effect.memory is not memory or effect.role not in roles:
                    continue
                has = concerned & effect.when(view)
                begin = effect.first(view)
                first = np.where(has, begin, first)
                end = np.where(has, begin + effect.count(view) * effect.each(view), end)
                used |= has
        return Ranges(first, end, used)


class _View:
    """A :class:`openmxu.arch.effects.View` of all instructions, with the fields of one opcode."""

    def __init__(self, work: Work, opcode: Opcode) -> None:
        self.config = work.config
        self._words = work.words
        self._opcode = opcode

    def __getitem__(self, key: str | tuple[Register, str]) -> _Array:
        return self._words.field(self._opcode, key) if isinstance(key, str) else self._words.register(*key)
