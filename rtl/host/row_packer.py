"""Row packer: converts rows to beats of a memory bus."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.rtl.common.interfaces import write_beat_layout
from openmxu.rtl.common.run_walker import place_layout

__all__ = ["RowPacker"]


class RowPacker(wiring.Component):
    """Cuts rows into beats, or joins rows into beats, with strobes for the bytes that the run writes.

    Parameters
    ----------
    row_bytes, beat_bytes
        Powers of two.

    Members
    -------
    places
        The place of each row, see :func:`~openmxu.rtl.common.run_walker.place_layout`; taken with the row.
    rows
        The rows of all runs.
    beats
        Data, strobes, and ``last`` with the last beat of a run.
    """

    def __init__(self, *, row_bytes: int, beat_bytes: int) -> None:
        self._row_bytes = row_bytes
        self._beat_bytes = beat_bytes
        self._lane_width = ceil_log2(max(1, beat_bytes // row_bytes))
        super().__init__(
            {
                "places": In(stream.Signature(place_layout(self._lane_width))),
                "rows": In(stream.Signature(8 * row_bytes)),
                "beats": Out(stream.Signature(write_beat_layout(beat_bytes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        transfer = Signal()
        m.d.comb += [transfer.eq(self.rows.valid & self.rows.ready), self.places.ready.eq(transfer)]
        if self._row_bytes > self._beat_bytes:
            self._cut(m)
        else:
            self._join(m, transfer)
        return m

    def _cut(self, m: Module) -> None:
        parts = self._row_bytes // self._beat_bytes
        place = Signal(range(parts))
        final = Signal()
        beat = self.beats
        m.d.comb += [
            final.eq(place == parts - 1),
            beat.p.data.eq(self.rows.payload.word_select(place, 8 * self._beat_bytes)),
            beat.p.strobe.eq(~0),
            beat.p.last.eq(self.places.p.last & final),
            beat.valid.eq(self.places.valid & self.rows.valid),
            self.rows.ready.eq(self.places.valid & beat.ready & final),
        ]
        with m.If(beat.valid & beat.ready):
            m.d.sync += place.eq(place + 1)

    def _join(self, m: Module, transfer: Signal) -> None:
        per_beat = self._beat_bytes // self._row_bytes
        width = 8 * self._row_bytes
        beat = self.beats
        held = Signal(max(0, per_beat - 1) * width, reset_less=True)
        strobes = Signal(max(0, per_beat - 1) * self._row_bytes)
        lane, last = self.places.p.lane, self.places.p.last
        complete = Signal()
        m.d.comb += [
            complete.eq(last | (lane == per_beat - 1)),
            beat.valid.eq(self.places.valid & self.rows.valid & complete),
            beat.p.last.eq(last),
            self.rows.ready.eq(self.places.valid & (~complete | beat.ready)),
        ]
        # The rows of earlier lanes wait in `held`, each at its place; the row that completes the beat bypasses it.
        for index in range(per_beat):
            here = Signal(name=f"here_{index}")
            data = beat.p.data.word_select(index, width)
            strobe = beat.p.strobe.word_select(index, self._row_bytes)
            m.d.comb += here.eq(lane == index)
            if index < per_beat - 1:
                held_data = held.word_select(index, width)
                held_strobe = strobes.word_select(index, self._row_bytes)
                m.d.comb += [data.eq(held_data), strobe.eq(held_strobe)]
                with m.If(transfer & complete):
                    m.d.sync += held_strobe.eq(0)
                with m.Elif(transfer & here):
                    m.d.sync += [held_data.eq(self.rows.payload), held_strobe.eq(~0)]
            with m.If(here):
                m.d.comb += [data.eq(self.rows.payload), strobe.eq(~0)]
