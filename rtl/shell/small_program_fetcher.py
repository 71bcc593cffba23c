"""Program fetcher for cores with few logic cells."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.memory import Memory

from openmxu.arch.config import ceil_log2
from openmxu.arch.isa import WORD_BITS, WORD_BYTES
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.shell.program_fetcher import ProgramFetcher

__all__ = ["SmallProgramFetcher"]


class SmallProgramFetcher(ProgramFetcher):
    """:class:`~openmxu.rtl.shell.program_fetcher.ProgramFetcher` without registers for instructions: the one that is
    given out is what its memory puts out. A beat is as long as an instruction or shorter.

    It asks for as many instructions as the memory holds at most, and when all of them have been taken.

    Parameters
    ----------
    address_width, data_bytes
        Of the memory port.
    depth
        Instructions that the memory holds; a power of two.

    Members
    -------
    enable, base, size, head, tail, memory, hold, instructions, fetching
        As of a :class:`~openmxu.rtl.shell.program_fetcher.ProgramFetcher`.
    """

    def __init__(self, address_width: int, data_bytes: int, *, depth: int = 16) -> None:
        if data_bytes > WORD_BYTES:
            raise ValueError(f"data_bytes must be at most {WORD_BYTES}, not {data_bytes}")
        place_width = address_width - ceil_log2(WORD_BYTES)
        super().__init__(address_width, data_bytes, depth=depth, chunk=depth // 2, place_width=place_width)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._depth
        beat_bits = ceil_log2(self._data_bytes)
        parts = WORD_BYTES // self._data_bytes
        m.submodules.memory = memory = Memory(shape=WORD_BITS, depth=depth, init=[], attrs={"ram_style": "block"})
        write = memory.write_port(granularity=8 * self._data_bytes)
        part = Signal(range(parts))
        asked = Signal(range(depth + 1))
        fetched = Signal(range(depth + 1))  # of those, the ones that are there
        given = Signal(range(depth + 1))  # and those that have been taken
        is_empty = Signal()
        end = Signal.like(self.tail)
        stopping = Signal(init=1)
        request = self.memory.request
        m.d.comb += [
            is_empty.eq(given == fetched),
            request.p.address.eq(Cat(Const(0, ceil_log2(WORD_BYTES)), (self.base + self.tail)[: len(self.base)])),
            request.p.beats.eq(asked << (ceil_log2(WORD_BYTES) - beat_bits)),
            write.addr.eq(fetched),
            write.data.eq(self.memory.data.payload.replicate(parts)),
        ]
        with m.If(~self.enable):
            m.d.sync += stopping.eq(1)
        with m.FSM() as fsm:
            with m.State("LOOK"):
                m.d.sync += [end.eq(self.tail), asked.eq(0)]
                with m.If(stopping | ~self.enable):
                    m.d.sync += [self.tail.eq(0), stopping.eq(~self.enable)]
                with m.Elif((self.head != self.tail) & is_less(self.head, self.size) & is_empty):
                    m.d.sync += [fetched.eq(0), given.eq(0)]
                    m.next = "COUNT"
            with m.State("COUNT"):
                # As far as the program goes, or the ring, or the memory.
                with m.If(~self.enable):
                    m.next = "LOOK"
                with m.Elif((end == self.head) | (end == self.size) | (asked == depth)):
                    m.next = "ASK"
                with m.Else():
                    m.d.sync += [end.eq(end + 1), asked.eq(asked + 1)]
            with m.State("ASK"):
                m.d.comb += request.valid.eq(1)
                with m.If(request.ready):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += self.memory.data.ready.eq(1)
                with m.If(self.memory.data.valid):
                    m.d.comb += write.en.eq(Cat(part == place for place in range(parts)))
                    m.d.sync += part.eq(part + 1)
                    with m.If(part == parts - 1):
                        m.d.sync += fetched.eq(fetched + 1)
                        with m.If(fetched + 1 == asked):
                            m.d.sync += self.tail.eq(Mux(end == self.size, 0, end))
                            m.next = "LOOK"
        m.d.comb += self.fetching.eq(~fsm.ongoing("LOOK") | ~is_empty)
        self._give(m, memory, given, is_empty)
        return m

    def _give(self, m: Module, memory: Memory, given: Signal, is_empty: Signal) -> None:
        """Offer what the memory puts out, once that is the next instruction."""
        read = memory.read_port()
        shown, offered, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(given),
            self.instructions.payload.eq(read.data),
            # What has been offered is not withdrawn.
            self.instructions.valid.eq(shown & (offered | ~self.hold)),
            taken.eq(self.instructions.valid & self.instructions.ready),
        ]
        m.d.sync += [shown.eq(~is_empty & ~taken), offered.eq(self.instructions.valid & ~self.instructions.ready)]
        with m.If(taken):
            m.d.sync += given.eq(given + 1)
