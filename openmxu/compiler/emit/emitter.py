"""The instruction stream under construction, and the reads, weights and parameters that it puts between the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import REGISTERS, Format, Instruction, Register, format_named
from openmxu.compiler.emit.tasks import LoadedTile, TaskList, WeightTile
from openmxu.compiler.emit.weights import ByteFormat

__all__ = ["Code", "Emitter", "Load", "ParameterSets", "WeightRun", "WeightStream"]

_READ_WEIGHTS = format_named("Read_Weights")
_LOAD_WEIGHTS = format_named("Load_Weights")
_SET = format_named("Set_Configuration")
_HALT = format_named("Halt")

_RUNS_AHEAD = 3
"""Read_Weights to have outstanding: the one in use, the next one, and one to spare while an instruction waits."""


@dataclass(frozen=True)
class Code:
    """Instructions, and the number of the layer that each belongs to, int32; -1 for none."""

    instructions: tuple[Instruction, ...]
    layers: NDArray[np.int32]


@dataclass
class Emitter:
    """Collects instructions; writes configuration registers only where their value changes.

    ``layer`` is the number of the layer that instructions are added for.
    """

    instructions: list[Instruction] = field(default_factory=list)
    layer: int = 0
    _layers: list[int] = field(default_factory=list)
    _registers: dict[Register, int] = field(default_factory=dict)
    _packed: dict[tuple[object, ...], int] = field(default_factory=dict)

    def code(self) -> Code:
        """What has been emitted."""
        return Code(tuple(self.instructions), np.array(self._layers, np.int32))

    def _emit(self, format: Format, **values: int) -> None:
        self.append(format(**values))

    def configure(self, register: Register, **values: int) -> None:
        """Give a register its value; one that starts work is written every time."""
        format = REGISTERS[register]
        key = (register, *values.items())
        value = self._packed.get(key)
        if value is None:
            value = self._packed[key] = format.pack(**values)
        if format.is_action or self._registers.get(register) != value:
            self._registers[register] = value
            self._emit(_SET, register=register, value=value)

    def append(self, instruction: Instruction) -> None:
        """An instruction that uses what is configured."""
        self.instructions.append(instruction)
        self._layers.append(self.layer)

    def read_weights(self, weights: int, tiles: int) -> None:
        """Tiles of weight memory to the weight FIFO."""
        self._emit(_READ_WEIGHTS, weights=weights, tiles=tiles)

    def load_weights(self, unified_buffer: int, transposed: bool) -> None:
        """Rows of the unified buffer to the weight FIFO."""
        self._emit(_LOAD_WEIGHTS, unified_buffer=unified_buffer, transposed=transposed)

    def halt(self) -> None:
        """End the program."""
        self.layer = -1
        self._emit(_HALT)


@dataclass(frozen=True)
class WeightRun:
    """Contiguous tiles of one format, from number ``first`` on."""

    format: ByteFormat
    first: int
    tiles: int


@dataclass(frozen=True)
class Load:
    """A tile of the unified buffer; the task with number ``after``, if there is one, must come before it."""

    tile: LoadedTile
    after: int | None


@dataclass
class _Outstanding:
    """A Read_Weights or Load_Weights, and how many of its tiles are still to be taken."""

    tiles: int
    is_read: bool


class WeightStream:
    """Queues weights ahead of the multiplications that take them, never more than may be outstanding.

    Parameters
    ----------
    runs
        Tiles of weight memory and of the unified buffer in the order in which they are taken.
    loads
        Called for each Load_Weights that is emitted.
    """

    def __init__(
        self,
        emitter: Emitter,
        config: Config,
        runs: Sequence[WeightRun | Load],
        loads: Callable[[LoadedTile], None],
    ) -> None:
        self._emitter = emitter
        self._tile_bytes = config.tile_bytes
        self._depth, self._fifo_tiles = config.weight_queue_depth, config.weight_fifo_tiles
        self._limit = min(self._depth, config.command_queue_depth, _RUNS_AHEAD)
        self._waiting = deque(runs)
        self._outstanding: deque[_Outstanding] = deque()
        self._loads = loads

    def begin(self) -> None:
        """Queue the first weights, which take longer on their way into the array than inputs do."""
        self._queue(1)

    def take(self, tile: WeightTile | LoadedTile) -> None:
        """Account for the next tile; to be called before the multiplication that takes it, and behind all tasks that
        write what it is made of."""
        if isinstance(tile, WeightTile):
            self._queue(self._limit)
        elif not self._outstanding:
            self._load(self._waiting.popleft())
        self._outstanding[0].tiles -= 1
        if self._outstanding[0].tiles == 0:
            self._outstanding.popleft()

    def load(self, is_emitted: Sequence[bool]) -> None:
        """Queue as many of the next tiles of the unified buffer as have room, and what is read behind them.

        ``is_emitted`` says of each task whether it has been emitted.
        """
        while self._waiting and len(self._outstanding) < self._depth:
            following = self._waiting[0]
            if isinstance(following, WeightRun):
                if self._outstanding and all(item.is_read for item in self._outstanding):
                    return
                self._queue(self._depth)
            elif (following.after is None or is_emitted[following.after]) and self._has_room():
                self._load(self._waiting.popleft())
            else:
                return

    def _has_room(self) -> bool:
        """Whether the tile of a Load_Weights would have a place in the weight FIFO."""
        return sum(item.tiles for item in self._outstanding) < self._fifo_tiles

    def _load(self, load: Load) -> None:
        format = load.tile.format
        self._emitter.configure(Register.WEIGHT_FORMAT, signed=format.signed, zero_point=format.zero_point)
        self._emitter.load_weights(load.tile.rows.first, load.tile.transposed)
        self._loads(load.tile)
        self._outstanding.append(_Outstanding(1, is_read=False))

    def _queue(self, limit: int) -> None:
        while self._waiting and len(self._outstanding) < limit:
            run = self._waiting[0]
            if isinstance(run, Load):
                return
            self._waiting.popleft()
            self._emitter.configure(Register.WEIGHT_FORMAT, signed=run.format.signed, zero_point=run.format.zero_point)
            self._emitter.read_weights(run.first * self._tile_bytes, run.tiles)
            self._outstanding.append(_Outstanding(run.tiles, is_read=True))


class ParameterSets:
    """Loads biases and scales shortly before they are used, and remembers which ones the activation unit holds.

    Parameters
    ----------
    addresses
        For each layer, the host address of its first parameter set.
    tiles
        For each layer, its number of parameter sets.
    load_sets, staging_slots
        As in the plan.
    """

    def __init__(
        self,
        tasks: TaskList,
        config: Config,
        addresses: Sequence[int],
        tiles: Sequence[int],
        load_sets: int,
        staging_slots: int,
    ) -> None:
        self._tasks = tasks
        self._addresses = addresses
        self._tiles = tiles
        self._load_sets = load_sets
        self._staging_slots = staging_slots
        self._set_bytes = PARAMETER_ROWS * config.size
        self._capacity = config.parameter_sets // load_sets
        self._held: dict[tuple[int, int], int] = {}
        self._loads = 0

    def has_room(self, layer: int) -> bool:
        """Whether the activation unit holds all sets of a layer at a time."""
        return -(-self._tiles[layer] // self._load_sets) <= self._capacity

    def holds(self, layer: int, tile: int) -> bool:
        """Whether a tile's parameter set is there."""
        return (layer, tile // self._load_sets) in self._held

    def require(self, layer: int, tile: int) -> int:
        """The number of a tile's parameter set, loaded now if it is not held."""
        load, index = divmod(tile, self._load_sets)
        key = (layer, load)
        if key not in self._held:
            self._load(key)
        return self._held[key] + index

    def _load(self, key: tuple[int, int]) -> None:
        layer, load = key
        if len(self._held) == self._capacity:
            del self._held[next(iter(self._held))]
        first_tile = load * self._load_sets
        count = min(self._load_sets, self._tiles[layer] - first_tile)
        staging = self._loads % self._staging_slots * self._load_sets * PARAMETER_ROWS
        first = self._loads % self._capacity * self._load_sets
        host = self._addresses[layer] + first_tile * self._set_bytes
        self._tasks.read(staging, host, count * PARAMETER_ROWS)
        self._tasks.configure(Register.LOAD_PARAMETERS, unified_buffer=staging, first=first, count=count)
        self._held[key] = first
        self._loads += 1
