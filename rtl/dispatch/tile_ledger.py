"""Tile ledger: counts the weight tiles that are queued at this point in the program."""

from amaranth.hdl import Module, Mux, ResetInserter, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.common.counting import Countdown
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import loads_weights

__all__ = ["TileLedger"]


class TileLedger(wiring.Component):
    """Counts tiles in program order, independently of the progress of the weight fetcher and the matrix unit.

    Members
    -------
    enqueue, tiles
        A Read_Weights of ``tiles`` tiles is dispatched, not while ``queue_full``; or a Load_Weights of one tile, only
        while ``may_load``.
    take
        A matrix instruction takes the next tile; only while ``has_queued_tile``, and not together with ``enqueue``.
    clear, is_clear
        Discard all tiles, queued or taken; no tile is queued.
    has_queued_tile, has_two_queued_tiles, has_tile, queue_full
        A tile is queued, from two cycles after ``enqueue`` on; two or more are; one has been taken;
        ``weight_queue_depth`` instructions have tiles that are not taken.
    may_load
        In cores with Load_Weights: fewer tiles are queued than the weight FIFO holds, and not ``queue_full``. Valid
        two cycles after ``enqueue`` or ``take``.
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
                "has_two_queued_tiles": Out(1),
                "has_tile": Out(1),
                "queue_full": Out(1),
                **({"may_load": Out(1)} if loads_weights(config) else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._config.weight_queue_depth
        counts = StreamFIFO(24, depth, always_ready=True)
        m.submodules.counts = ResetInserter(self.clear)(counts)
        # The oldest Read_Weights is counted down in registers outside the queue, which need no memory read first.
        left = Countdown(Shape(24), "oldest")
        has_oldest = Signal()
        entries = Signal(range(depth + 1))
        frees = Signal()
        m.d.comb += [
            frees.eq(self.take & left.last),
            counts.input.payload.eq(self.tiles),
            counts.input.valid.eq(self.enqueue),
            counts.output.ready.eq(~has_oldest | frees),
            self.queue_full.eq(entries == depth),
            self.has_queued_tile.eq(has_oldest),
            self.has_two_queued_tiles.eq(has_oldest & (~left.last | counts.output.valid)),
            self.is_clear.eq(entries == 0),
        ]
        m.d.sync += entries.eq(entries + self.enqueue - frees)
        if loads_weights(self._config):
            queued, has_room = Signal(range(depth << 24)), Signal(init=1)
            m.d.comb += self.may_load.eq(has_room & ~self.queue_full)
            m.d.sync += has_room.eq(queued < self._config.weight_fifo_tiles)
            with m.If(self.clear):
                m.d.sync += queued.eq(0)
            with m.Elif(self.enqueue | self.take):
                m.d.sync += queued.eq(queued + Mux(self.take, -1, self.tiles))
        with m.If(counts.output.ready):
            m.d.sync += [has_oldest.eq(counts.output.valid), *left.start(counts.output.payload)]
        with m.Elif(self.take):
            m.d.sync += left.step()
        with m.If(self.clear):
            m.d.sync += [self.has_tile.eq(0), has_oldest.eq(0), entries.eq(0)]
        with m.Elif(self.take):
            m.d.sync += self.has_tile.eq(1)
        return m
