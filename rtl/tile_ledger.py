"""Tile ledger: which weight tiles are queued at this place in the program."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.stream_fifo import StreamFIFO

__all__ = ["TileLedger"]


class TileLedger(wiring.Component):
    """Counts tiles in program order, however far the weight fetcher and the matrix unit have come.

    Members
    -------
    enqueue, tiles
        A Read_Weights of ``tiles`` tiles is dispatched; not while ``queue_full``.
    take
        A MatrixMultiply that takes the next tile is dispatched; only while ``has_queued_tile``.
    clear, is_clear
        Forget everything; ``clear`` is held until ``is_clear``.
    has_queued_tile, has_tile, queue_full
        A tile is queued; one has been taken; ``weight_queue_depth`` Read_Weights have tiles that are not taken.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "enqueue": In(1),
                "tiles": In(24),
                "take": In(1),
                "clear": In(1),
                "is_clear": Out(1),
                "has_queued_tile": Out(1),
                "has_tile": Out(1),
                "queue_full": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counts = counts = StreamFIFO(24, self._config.weight_queue_depth)
        taken = Signal(24)
        m.d.comb += [
            counts.input.payload.eq(self.tiles),
            counts.input.valid.eq(self.enqueue),
            counts.output.ready.eq(self.clear | (self.take & (taken + 1 == counts.output.payload))),
            self.queue_full.eq(~counts.input.ready),
            self.has_queued_tile.eq(counts.output.valid),
            self.is_clear.eq(~counts.output.valid),
        ]
        with m.If(self.take):
            m.d.sync += [taken.eq(taken + 1), self.has_tile.eq(1)]
        with m.If(counts.output.ready):
            m.d.sync += taken.eq(0)
        with m.If(self.clear):
            m.d.sync += self.has_tile.eq(0)
        return m
