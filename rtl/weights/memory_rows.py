"""Memory rows: converts beats of weight memory to rows, which are registers."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data
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
        row = Signal(data.ArrayLayout(8 * self._beat_bytes, parts), reset_less=True)
        complete = Signal()
        # Beats of the row, or of the next one where the row is complete.
        place = Signal(range(parts))
        # A gate of its own, close to the memory port.
        is_ready = Signal(attrs={"keep": 1})
        m.d.comb += [
            self.rows.payload.eq(row),
            self.rows.valid.eq(self.places.valid & complete),
            self.places.ready.eq(self.rows.valid & self.rows.ready),
            is_ready.eq(~complete | self.places.ready),
            self.beats.ready.eq(is_ready),
        ]
        with m.If(is_ready):
            # Whether there is a beat is known late: where there is none, the next one is written to the same place.
            m.d.sync += [row[place].eq(self.beats.payload), complete.eq(self.beats.valid & (place == parts - 1))]
            with m.If(self.beats.valid):
                m.d.sync += place.eq(place + 1)
