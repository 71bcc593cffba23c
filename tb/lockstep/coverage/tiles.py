"""Coverage of weight tiles on their way from Read_Weights to the array."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode, Register
from tb.lockstep.coverage.bins import Bin
from tb.lockstep.programs.steps import Step

__all__ = ["Tiles"]

GROUP = "tiles"


@dataclass(frozen=True)
class _Tile:
    read: int
    kind: str


class Tiles:
    """Observes weight tiles in a case."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._queued: deque[_Tile] = deque()
        self._reads = 0
        self._in_array_after = ""

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
            self._in_array_after = ""
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
        wide = step.register(Register.WEIGHT_FORMAT)["wide"]
        self._queued += [_Tile(self._reads, ("low", "high")[n % 2] if wide else "8-bit") for n in range(tiles)]
        self._reads += 1

    def _use(self, step: Step) -> Iterator[str]:
        values = step.values
        if not values["next_tile"]:
            yield (
                "a high tile is used again after its pair" if self._in_array_after == "pair" else "a tile is used again"
            )
            return
        first = self._queued.popleft()
        if values["wide_weights"]:
            second = self._queued.popleft()
            if first.read != second.read:
                yield "a 16-bit pair of two Read_Weights"
            elif first.kind == "8-bit":
                yield "a 16-bit pair of 8-bit tiles"
            else:
                begins_low = first.kind == "low"
                yield (
                    "a 16-bit pair of one Read_Weights" if begins_low else "a 16-bit pair that begins with a high tile"
                )
        elif first.kind != "8-bit":
            yield f"a {first.kind} tile of 16-bit weights alone"
        if step.register(Register.WEIGHT_FORMAT)["wide"] != (first.kind != "8-bit"):
            yield "WEIGHT_FORMAT is changed before the tile is taken"
        if not self._queued:
            yield "the queue is emptied"
        self._in_array_after = "pair" if values["wide_weights"] else "one"
