"""Coverage of weight tiles on their way from Read_Weights to the array."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode, Register
from tb.lockstep.coverage.bins import Bin, have_load_weights
from tb.lockstep.programs.steps import Step

__all__ = ["Tiles"]

GROUP = "tiles"

_SOURCES = ("of weight memory", "of rows", "of columns")
"""Where tiles come from: Read_Weights, Load_Weights, and Load_Weights that transposes."""


@dataclass(frozen=True)
class _Tile:
    read: int
    kind: str
    source: str = _SOURCES[0]


class Tiles:
    """Observes weight tiles in a case."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._queued: deque[_Tile] = deque()
        self._reads = 0
        self._in_array_after = ""
        self._source = ""

    @staticmethod
    def declared(configs: Sequence[Config]) -> dict[str, list[str]]:
        """All bins."""
        names = [
            "more tiles than the FIFO holds",
            "the queue is full",
            "the queue is emptied",
            "tiles are left at Halt",
            "tiles are left at a fault",
            "a 16-bit pair of one Read_Weights",
            "a 16-bit pair that begins with a high tile",
            "a 16-bit pair of 8-bit tiles",
            "a low tile of 16-bit weights alone",
            "a high tile of 16-bit weights alone",
            "WEIGHT_FORMAT is changed before the tile is taken",
            "a tile is used again",
            "a high tile is used again after its pair",
        ]
        if any(config.weight_queue_depth > 1 for config in configs):
            names.append("a 16-bit pair of two Read_Weights")
        if have_load_weights(configs):
            names += [f"a tile {before}, then one {after}" for before, after in product(_SOURCES, _SOURCES)]
            names += [
                "the last Load_Weights that has room",
                "Read_Weights behind Load_Weights",
                "Load_Weights behind Read_Weights",
                "a 16-bit pair of the unified buffer",
                "WEIGHT_FORMAT is changed between two Load_Weights",
            ]
        return {GROUP: names}

    def observe(self, step: Step) -> Iterator[Bin]:
        """The bins hit by an instruction."""
        for name in self._names(step):
            yield GROUP, name

    def _names(self, step: Step) -> Iterator[str]:
        if step.fault is not FaultCode.NONE or step.opcode is Opcode.HALT:
            if self._queued:
                yield f"tiles are left at {'Halt' if step.fault is FaultCode.NONE else 'a fault'}"
            self._queued.clear()
            self._in_array_after = self._source = ""
        elif step.opcode is Opcode.LOAD_WEIGHTS:
            yield from self._load(step)
        elif step.opcode is Opcode.READ_WEIGHTS:
            yield from self._read(step)
        elif step.opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE):
            yield from self._use(step)

    def _read(self, step: Step) -> Iterator[str]:
        tiles = step.values["tiles"]
        if tiles > self._config.weight_fifo_tiles:
            yield "more tiles than the FIFO holds"
        if len(step.state.outstanding) + 1 == self._config.weight_queue_depth:
            yield "the queue is full"
        if self._queued and self._queued[-1].source != _SOURCES[0]:
            yield "Read_Weights behind Load_Weights"
        wide = step.register(Register.WEIGHT_FORMAT)["wide"]
        self._queued += [_Tile(self._reads, ("low", "high")[n % 2] if wide else "8-bit") for n in range(tiles)]
        self._reads += 1

    def _load(self, step: Step) -> Iterator[str]:
        state, config = step.state, self._config
        if sum(state.outstanding) + 1 == config.weight_fifo_tiles or (
            len(state.outstanding) + 1 == config.weight_queue_depth
        ):
            yield "the last Load_Weights that has room"
        if self._queued and self._queued[-1].source == _SOURCES[0]:
            yield "Load_Weights behind Read_Weights"
        format = str(step.register(Register.WEIGHT_FORMAT))
        if self._queued and self._queued[-1].kind not in ("low", "high", "8-bit", format):
            yield "WEIGHT_FORMAT is changed between two Load_Weights"
        self._queued.append(_Tile(self._reads, format, _SOURCES[1 + step.values["transposed"]]))
        self._reads += 1

    def _use(self, step: Step) -> Iterator[str]:
        values = step.values
        if not values["next_tile"]:
            yield (
                "a high tile is used again after its pair" if self._in_array_after == "pair" else "a tile is used again"
            )
            return
        first = self._queued.popleft()
        yield from self._follow(first)
        if values["wide_weights"]:
            second = self._queued.popleft()
            yield from self._follow(second)
            if first.source != _SOURCES[0]:
                yield "a 16-bit pair of the unified buffer"
            elif first.read != second.read:
                yield "a 16-bit pair of two Read_Weights"
            elif first.kind == "8-bit":
                yield "a 16-bit pair of 8-bit tiles"
            else:
                begins_low = first.kind == "low"
                yield (
                    "a 16-bit pair of one Read_Weights" if begins_low else "a 16-bit pair that begins with a high tile"
                )
        elif first.kind in ("low", "high"):
            yield f"a {first.kind} tile of 16-bit weights alone"
        if step.register(Register.WEIGHT_FORMAT)["wide"] != (first.kind in ("low", "high")):
            yield "WEIGHT_FORMAT is changed before the tile is taken"
        if not self._queued:
            yield "the queue is emptied"
        self._in_array_after = "pair" if values["wide_weights"] else "one"

    def _follow(self, tile: _Tile) -> Iterator[str]:
        """The sources of two tiles that are taken one after the other."""
        if self._source and self._config.features.has(Opcode.LOAD_WEIGHTS):
            yield f"a tile {self._source}, then one {tile.source}"
        self._source = tile.source
