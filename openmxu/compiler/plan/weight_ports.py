"""Weights through both memory ports, where a tile takes longer to come from weight memory than the array works on it.

Some of the tiles then have a copy in host memory. They are read into a ring of unified buffer rows while tiles of
weight memory come, and loaded from there, which takes a cycle for each row.
"""

from __future__ import annotations

from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES, Opcode
from openmxu.compiler.emit.tasks import Rows
from openmxu.compiler.emit.tiles import kernel_tiles
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Convolution, Operation
from openmxu.compiler.plan.staging import fetch_cycles, row_cycles
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.layout import step_tiles

__all__ = ["WeightPorts"]

_FETCHED = 4
"""Tiles of weight memory one after the other, at most: few, because the weight FIFO holds those of two turns."""

_RING = 24
"""Tiles of copies on their way, at most."""

_INSTRUCTIONS = 2.5
"""Instructions for each copy, which the host port reads as well: its load, multiplications, and some of the rest."""

_SHARE = 8
"""The ring takes at most one row of so many of the unified buffer."""


@dataclass(frozen=True)
class WeightPorts:
    """How the tiles of some operations are divided between the ports.

    Attributes
    ----------
    operations
        Their numbers in the network.
    fetched, loaded
        Tiles that come from weight memory one after the other, and behind them tiles that are loaded.
    alone
        Tiles of the first operation that come from weight memory before any copy: the host port reads the input then.
    ring
        Unified buffer rows of copies on their way.
    """

    operations: frozenset[int]
    fetched: int
    loaded: int
    alone: int
    ring: Rows

    @classmethod
    def of(cls, network: Network, batch: int, first: int, config: Config) -> WeightPorts:
        """The division for a network, with a ring from row ``first`` on."""
        size, fetch = config.size, fetch_cycles(config)
        nowhere = cls(frozenset(), 0, 0, 0, Rows(first, 0))
        if not config.features.has(Opcode.LOAD_WEIGHTS) or fetch <= size:
            return nowhere
        rows = {index: _rows(network, operation, batch) for index, operation in enumerate(network.operations)}
        bound = {index: count for index, count in rows.items() if count is not None and count < fetch}
        if not bound:
            return nowhere
        # While so many tiles come from weight memory, the host port reads as many copies.
        read = size * row_cycles(config) + _INSTRUCTIONS * -(-WORD_BYTES // config.host_data_bytes)
        ring = min(_RING, config.unified_buffer_rows // _SHARE // size)
        most = ring // 2
        fetched = max(1, min(_FETCHED, round(most * read / fetch)))
        loaded = min(most, round(fetched * fetch / read))
        alone = _input_rows(network, batch, size) * row_cycles(config) // fetch
        operations = frozenset(
            index
            for index in bound
            if _least_tiles(network.operations[index], size) > fetched + loaded + (0 if index else alone)
        )
        if not operations or loaded < 1:
            return nowhere
        return cls(operations, fetched, loaded, alone, Rows(first, ring * size))

    def copied(self, operation: int, tiles: range) -> list[int]:
        """Those of an operation's tiles that have a copy, in the order of use."""
        divided = tiles[0 if operation else self.alone :]
        return [tile for place, tile in enumerate(divided) if place % (self.fetched + self.loaded) >= self.fetched]


def _input_rows(network: Network, batch: int, size: int) -> int:
    """Unified buffer rows of what the first operation reads, if that is a whole input; steps of cells take turns."""
    if not isinstance(network.operations[0], Convolution):
        return 0
    source = network.tensors[network.operations[0].sources[0]]
    return batch * source.positions * source.item * -(-source.channels // size)


def _rows(network: Network, operation: Operation, batch: int) -> int | None:
    """Rows that the array multiplies by each tile, at most; ``None`` for operations without weights."""
    if isinstance(operation, Recurrent):
        return batch
    if isinstance(operation, Convolution):
        return batch * network.sums(operation) * network.passes(operation)
    return None


def _least_tiles(operation: Operation, size: int) -> int:
    """The tiles of an operation; of a cell without those of factors."""
    return kernel_tiles(operation, size).count() if isinstance(operation, Convolution) else step_tiles(operation, size)
