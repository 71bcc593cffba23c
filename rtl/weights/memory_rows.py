"""Memory rows: converts beats of weight memory to rows, which are registers."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import connect, flipped

from openmxu.rtl.common.register_slice import StreamRegister
from openmxu.rtl.host.row_unpacker import RowUnpacker

__all__ = ["MemoryRows"]


class MemoryRows(RowUnpacker):
    """A row unpacker behind a register for its beats; rows of several beats are registers as a whole.

    Whether a row is there depends on registers alone: on the chip, memory ports are far from what takes the rows.

    Members
    -------
    places, beats, rows
        As those of the row unpacker.
    """

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
