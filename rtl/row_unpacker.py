"""Row unpacker: beats of a memory bus become rows."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2

__all__ = ["RowUnpacker", "run_layout"]


def run_layout(rows_width: int, lane_width: int) -> data.StructLayout:
    """A run of consecutive rows in one burst.

    ``lane`` is the place of the first row within the first beat when a beat holds several rows; else it has no bits.
    """
    return data.StructLayout({"rows": rows_width, "lane": lane_width})


class RowUnpacker(wiring.Component):
    """Cuts beats into rows, or joins beats to rows; what is left of the last beat of a run is dropped.

    Parameters
    ----------
    row_bytes, beat_bytes
        Powers of two.
    rows_width
        Bits of the number of rows of a run.

    Members
    -------
    runs
        For each burst the rows in it, see :func:`run_layout`; a run is taken with its last row.
    beats
        Data of the bursts.
    rows
        The rows of all runs in order.
    index
        Number of the row within its run.
    """

    def __init__(self, *, row_bytes: int, beat_bytes: int, rows_width: int) -> None:
        self._row_bytes = row_bytes
        self._beat_bytes = beat_bytes
        self._lane_width = ceil_log2(max(1, beat_bytes // row_bytes))
        super().__init__(
            {
                "runs": In(stream.Signature(run_layout(rows_width, self._lane_width))),
                "beats": In(stream.Signature(8 * beat_bytes)),
                "rows": Out(stream.Signature(8 * row_bytes)),
                "index": Out(rows_width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.index
        last = Signal()
        transfer = Signal()
        m.d.comb += [
            last.eq(count + 1 == self.runs.p.rows),
            transfer.eq(self.rows.valid & self.rows.ready),
            self.runs.ready.eq(transfer & last),
        ]
        with m.If(transfer):
            m.d.sync += count.eq(count + 1)
            with m.If(last):
                m.d.sync += count.eq(0)

        if self._row_bytes > self._beat_bytes:
            self._join(m)
        else:
            self._cut(m, count, last, transfer)
        return m

    def _join(self, m: Module) -> None:
        parts = self._row_bytes // self._beat_bytes
        width = 8 * self._beat_bytes
        held = Signal((parts - 1) * width, reset_less=True)
        place = Signal(range(parts))
        complete = Signal()
        m.d.comb += [
            complete.eq(place == parts - 1),
            self.rows.payload.eq(Cat(held, self.beats.payload)),
            self.rows.valid.eq(self.runs.valid & self.beats.valid & complete),
            self.beats.ready.eq(self.runs.valid & (~complete | self.rows.ready)),
        ]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(~complete):
                m.d.sync += held.eq(Cat(held, self.beats.payload)[width:])

    def _cut(self, m: Module, count: Signal, last: Signal, transfer: Signal) -> None:
        per_beat = self._beat_bytes // self._row_bytes
        lane = Signal(self._lane_width)
        beat_done = Signal()
        m.d.comb += [
            lane.eq(count + self.runs.p.lane),
            beat_done.eq(last | (lane == per_beat - 1)),
            self.rows.payload.eq(self.beats.payload.word_select(lane, 8 * self._row_bytes)),
            self.rows.valid.eq(self.runs.valid & self.beats.valid),
            self.beats.ready.eq(transfer & beat_done),
        ]
