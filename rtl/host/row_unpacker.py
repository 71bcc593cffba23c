"""Row unpacker: converts beats of a memory bus to rows."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.rtl.common.run_walker import place_layout

__all__ = ["RowUnpacker"]


class RowUnpacker(wiring.Component):
    """Cuts beats into rows, or joins beats into rows; the rest of a run's last beat is dropped.

    Parameters
    ----------
    row_bytes, beat_bytes
        Powers of two.

    Members
    -------
    places
        The place of each row, see :func:`~openmxu.rtl.common.run_walker.place_layout`; taken with the row.
    beats
        Data of the bursts.
    rows
        The rows of all runs in order.
    """

    def __init__(self, *, row_bytes: int, beat_bytes: int) -> None:
        self._row_bytes = row_bytes
        self._beat_bytes = beat_bytes
        self._lane_width = ceil_log2(max(1, beat_bytes // row_bytes))
        super().__init__(
            {
                "places": In(stream.Signature(place_layout(self._lane_width))),
                "beats": In(stream.Signature(8 * beat_bytes)),
                "rows": Out(stream.Signature(8 * row_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.places.ready.eq(self.rows.valid & self.rows.ready)
        if self._row_bytes > self._beat_bytes:
            self._join(m)
        else:
            self._cut(m)
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
            self.rows.valid.eq(self.places.valid & self.beats.valid & complete),
            self.beats.ready.eq(self.places.valid & (~complete | self.rows.ready)),
        ]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(~complete):
                m.d.sync += held.eq(Cat(held, self.beats.payload)[width:])

    def _cut(self, m: Module) -> None:
        per_beat = self._beat_bytes // self._row_bytes
        lane = self.places.p.lane
        m.d.comb += [
            self.rows.payload.eq(self.beats.payload.word_select(lane, 8 * self._row_bytes)),
            self.rows.valid.eq(self.places.valid & self.beats.valid),
            # Independent of the beat's valid, so that no combinational path leads from a memory port back to itself.
            self.beats.ready.eq(
                self.places.valid & self.rows.ready & (self.places.p.last | (lane == per_beat - 1)),
            ),
        ]
