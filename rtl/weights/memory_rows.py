"""Memory rows: converts beats of weight memory to rows, which are registers."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import ceil_log2
from openmxu.rtl.common.register_slice import StreamRegister
from openmxu.rtl.common.run_walker import place_layout
from openmxu.rtl.host.row_unpacker import RowUnpacker

__all__ = ["MemoryRows"]


class MemoryRows(wiring.Component):
    """A register for the beats of a memory bus, cut into rows or joined to rows.

    Whether a row is there depends on registers alone: on the chip, memory ports are far from what takes the rows.

    Parameters
    ----------
    row_bytes, beat_bytes
        Powers of two.

    Members
    -------
    places
        The place of each row, see :func:`~openmxu.rtl.common.run_walker.place_layout`; taken with the row.
    beats
        Data of the bursts; of rows of several beats, whole rows alone.
    rows
        The rows of all runs in order.
    """

    def __init__(self, *, row_bytes: int, beat_bytes: int) -> None:
        self._row_bytes = row_bytes
        self._beat_bytes = beat_bytes
        super().__init__(
            {
                "places": In(stream.Signature(place_layout(ceil_log2(max(1, beat_bytes // row_bytes))))),
                "beats": In(stream.Signature(8 * beat_bytes)),
                "rows": Out(stream.Signature(8 * row_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._row_bytes > self._beat_bytes:
            self._join(m)
        else:
            m.submodules.beat = beat = StreamRegister(self.beats.p.shape())
            m.submodules.unpacker = unpacker = RowUnpacker(row_bytes=self._row_bytes, beat_bytes=self._beat_bytes)
            connect(m, flipped(self.beats), beat.input)
            connect(m, beat.output, unpacker.beats)
            connect(m, flipped(self.places), unpacker.places)
            connect(m, unpacker.rows, flipped(self.rows))
        return m

    def _join(self, m: Module) -> None:
        parts = self._row_bytes // self._beat_bytes
        row = Signal(8 * self._row_bytes, reset_less=True)
        complete = Signal()
        # Beats of the row, or of the next one where the row is complete.
        place = Signal(range(parts))
        m.d.comb += [
            self.rows.payload.eq(row),
            self.rows.valid.eq(self.places.valid & complete),
            self.places.ready.eq(self.rows.valid & self.rows.ready),
            self.beats.ready.eq(~complete | self.places.ready),
        ]
        with m.If(self.beats.ready):
            m.d.sync += complete.eq(self.beats.valid & (place == parts - 1))
            with m.If(self.beats.valid):
                m.d.sync += [place.eq(place + 1), row.eq(Cat(row, self.beats.payload)[8 * self._beat_bytes :])]
