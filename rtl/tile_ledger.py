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
        A matrix instruction that takes the next tile is dispatched; only while ``has_queued_tile``.
    take_two
        One that takes the next two tiles is dispatched, whatever ``take``; only while ``has_two_queued_tiles``. The
        outputs are right again, and inputs may be set again, in the cycle after the next one.
    clear, is_clear
        Forget everything; ``clear`` is held until ``is_clear``.
    has_queued_tile, has_two_queued_tiles, has_tile, queue_full
        A tile is queued; two or more are; one has been taken; ``weight_queue_depth`` Read_Weights have tiles that are
        not taken.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "enqueue": In(1),
                "tiles": In(24),
                "take": In(1),
                "take_two": In(1),
                "clear": In(1),
                "is_clear": Out(1),
                "has_queued_tile": Out(1),
                "has_two_queued_tiles": Out(1),
                "has_tile": Out(1),
                "queue_full": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counts = counts = StreamFIFO(24, self._config.weight_queue_depth)
        taken = Signal(24)
        take_another = Signal()
        takes = Signal()
        is_last_of_entry = Signal()
        m.d.sync += take_another.eq(self.take_two)
        m.d.comb += [
            counts.input.payload.eq(self.tiles),
            counts.input.valid.eq(self.enqueue),
            takes.eq(self.take | self.take_two | take_another),
            is_last_of_entry.eq(taken + 1 == counts.output.payload),
            counts.output.ready.eq(self.clear | (takes & is_last_of_entry)),
            self.queue_full.eq(~counts.input.ready),
            self.has_queued_tile.eq(counts.output.valid),
            self.has_two_queued_tiles.eq(counts.output.valid & (~is_last_of_entry | (counts.level > 1))),
            self.is_clear.eq(~counts.output.valid),
        ]
        with m.If(takes):
            m.d.sync += [taken.eq(taken + 1), self.has_tile.eq(1)]
        with m.If(counts.output.ready):
            m.d.sync += taken.eq(0)
        with m.If(self.clear):
            m.d.sync += self.has_tile.eq(0)
        return m
