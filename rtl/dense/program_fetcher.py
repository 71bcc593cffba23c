"""Program fetcher of the dense profile."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.arch.isa import WORD_BITS, WORD_BYTES
from openmxu.rtl.interfaces import ReadPortSignature

__all__ = ["DenseProgramFetcher"]


class DenseProgramFetcher(wiring.Component):
    """:class:`~openmxu.rtl.axi.program_fetcher.ProgramFetcher` with a queue as wide as a beat, which becomes an
    instruction only when it is given out. A beat is as long as an instruction or shorter.

    It asks for all of its queue at most, and when that is empty.

    Parameters
    ----------
    address_width, data_bytes
        Of the memory port.
    depth
        Instructions that the queue holds; a power of two.

    Members
    -------
    enable
        While not set, nothing is asked for; once what was asked for has come, ``tail`` is 0.
    base, size
        Address of the ring, in instructions, and how many it has; constant while enabled or ``fetching``.
    head
        The place behind the last instruction; nothing is fetched while it is not below ``size``. 0 when not enabled.
    tail
        The place behind the last instruction that has been asked for.
    memory
        Host memory.
    hold
        While set, no further instruction is given out.
    instructions
        For the core.
    fetching
        Instructions are asked for or wait in the queue.
    """

    def __init__(self, address_width: int, data_bytes: int, *, depth: int = 16) -> None:
        if data_bytes > WORD_BYTES:
            raise ValueError(f"data_bytes must be at most {WORD_BYTES}, not {data_bytes}")
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._depth = depth
        place_width = address_width - ceil_log2(WORD_BYTES)
        super().__init__(
            {
                "enable": In(1),
                "base": In(place_width),
                "size": In(place_width),
                "head": In(place_width),
                "tail": Out(place_width),
                "memory": Out(ReadPortSignature(address_width, data_bytes)),
                "hold": In(1),
                "instructions": Out(stream.Signature(WORD_BITS)),
                "fetching": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bits = ceil_log2(self._data_bytes)
        parts = WORD_BYTES // self._data_bytes
        m.submodules.queue = queue = SyncFIFOBuffered(width=8 * self._data_bytes, depth=self._depth * parts)
        is_empty = self._give(m, queue, parts)

        available = Signal.like(self.size)
        asked = Signal(range(self._depth + 1))
        left = Signal(range(self._depth * parts + 1))
        end = Signal(len(self.tail) + 1)
        stopping = Signal(init=1)
        request = self.memory.request
        m.d.comb += [
            end.eq(self.tail + asked),
            request.p.address.eq(Cat(Const(0, ceil_log2(WORD_BYTES)), (self.base + self.tail)[: len(self.base)])),
            request.p.beats.eq(asked << (ceil_log2(WORD_BYTES) - beat_bits)),
            queue.w_data.eq(self.memory.data.payload),
        ]
        with m.If(~self.enable):
            m.d.sync += stopping.eq(1)
        with m.FSM() as fsm:
            with m.State("LOOK"):
                m.d.sync += available.eq(Mux(self.head >= self.tail, self.head, self.size) - self.tail)
                with m.If(stopping | ~self.enable):
                    m.d.sync += [self.tail.eq(0), stopping.eq(~self.enable)]
                with m.Elif((self.head != self.tail) & (self.head < self.size) & is_empty):
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.d.sync += asked.eq(Mux(available < self._depth, available, self._depth))
                m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += request.valid.eq(1)
                m.d.sync += left.eq(request.p.beats)
                with m.If(request.ready):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += [self.memory.data.ready.eq(1), queue.w_en.eq(self.memory.data.valid)]
                with m.If(self.memory.data.valid):
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.d.sync += self.tail.eq(Mux(end == self.size, 0, end))
                        m.next = "LOOK"
        m.d.comb += self.fetching.eq(~fsm.ongoing("LOOK") | ~is_empty)
        return m

    def _give(self, m: Module, queue: SyncFIFOBuffered, parts: int) -> Signal:
        """Join beats to instructions; returns whether none of them is left."""
        is_empty = Signal()
        place = Signal(range(parts))
        held = Signal(8 * self._data_bytes * (parts - 1), reset_less=True)
        complete = Signal()
        offered = Signal()
        m.d.comb += [
            complete.eq(queue.r_rdy & (place == parts - 1)),
            self.instructions.payload.eq(Cat(held, queue.r_data)),
            # What has been offered is not withdrawn.
            self.instructions.valid.eq(complete & (offered | ~self.hold)),
            queue.r_en.eq(Mux(complete, self.instructions.valid & self.instructions.ready, 1)),
            is_empty.eq(~queue.r_rdy & (queue.level == 0) & (place == 0)),
        ]
        m.d.sync += offered.eq(self.instructions.valid & ~self.instructions.ready)
        with m.If(queue.r_rdy & queue.r_en):
            m.d.sync += [place.eq(place + 1), held.eq(Cat(held, queue.r_data)[8 * self._data_bytes :])]
        return is_empty
