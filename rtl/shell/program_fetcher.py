"""Program fetcher: instructions from a ring in host memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import ceil_log2
from openmxu.arch.isa import WORD_BITS, WORD_BYTES
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.shell.interfaces import block_beats

__all__ = ["RING_WIDTH", "ProgramFetcher"]

RING_WIDTH = 28
"""Bits of a place in the ring, counted in instructions."""


class ProgramFetcher(wiring.Component):
    """Reads instructions ahead, one burst after the other, each of at most ``chunk`` of them. It asks for no
    instruction that it has no room for, so that it always takes what it asked for. A request never crosses a multiple
    of the longest burst, see :func:`~openmxu.rtl.shell.interfaces.block_beats`.

    Places in the ring count instructions. They are read from ``tail`` up to ``head``; at the end of the ring it goes on
    at its beginning.

    Parameters
    ----------
    address_width, data_bytes
        Of the memory port.
    depth
        Instructions that the queue holds; a power of two.
    chunk
        Instructions that are asked for at a time, at most; a power of two, at most half the depth, so that the queue
        does not run dry.
    place_width
        Bits of a place in the ring.

    Members
    -------
    enable
        While not set, nothing is asked for; once what was asked for has come, ``tail`` is 0.
    base, size
        Address of the ring, in instructions, and how many it has; constant while enabled or ``fetching``.
    head
        The place behind the last instruction; nothing is fetched while it is not below ``size``. 0 when not enabled.
    tail
        The place behind the last instruction that has come, when its burst is complete.
    memory
        Host memory.
    hold
        While set, no further instruction is given out.
    instructions
        For the core.
    fetching
        Instructions are asked for or wait in the queue.
    """

    def __init__(
        self, address_width: int, data_bytes: int, *, depth: int = 256, chunk: int = 64, place_width: int = RING_WIDTH
    ) -> None:
        for name, value in (("depth", depth), ("chunk", chunk)):
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")
        if 2 * chunk > depth:
            raise ValueError(f"chunk must be at most half the depth ({depth}), not {chunk}")
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._depth = depth
        self._chunk = chunk
        self._chunks = depth // chunk
        self._part_bytes = min(WORD_BYTES, data_bytes)  # what the queue holds in one place
        self._parts = WORD_BYTES // self._part_bytes
        self._places = depth * self._parts
        super().__init__(
            {
                "enable": In(1),
                "base": In(address_width - ceil_log2(WORD_BYTES)),
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
        m.submodules.unpacker = self._unpacker = RowUnpacker(row_bytes=self._part_bytes, beat_bytes=self._data_bytes)
        m.submodules.queue = queue = Memory(shape=8 * self._part_bytes, depth=self._places, init=[])
        self._write, self._read = queue.write_port(), queue.read_port()
        # Places of the queue, with one more bit that tells a full queue from an empty one.
        self._produce, self._consume = (Signal(range(2 * self._places), name=name) for name in ("produce", "consume"))
        self._arrives = Signal(name="arrives")
        self._left = Signal(range(self._chunk * self._parts + 1), name="left")  # parts that have been asked for
        self._comes_more = Signal(name="comes_more")  # a register: whether a beat is taken depends on it
        self._lane = Signal(len(self._unpacker.places.p.lane), name="lane")
        self._ask(m)
        self._receive(m)
        holds = self._give_out(m)
        m.d.comb += self.fetching.eq(~self._fsm.ongoing("LOOK") | holds)
        return m

    def _ask(self, m: Module) -> None:
        """Ask for the next instructions, as many as there are up to the next multiple of ``chunk``, the end of the
        ring and the end of a burst; look for more when they have come."""
        chunk_bits = ceil_log2(self._chunk)
        place = Signal(len(self.tail))
        stopping = Signal(init=1)
        has_new = Signal()
        at_end = Signal()
        has_room = Signal()
        end = Signal(chunk_bits + 1)
        asked = Signal(chunk_bits + 1)
        word = Signal(len(self.base))

        # What there is from `place` on in its group, a multiple of `chunk`, is known two cycles after head and place.
        here, size_here, group = place[:chunk_bits], self.size[:chunk_bits], place[chunk_bits:]
        head_here = Signal(chunk_bits)
        is_in_ring = Signal()
        is_head_near = self._is_same(m, "head", self.head[chunk_bits:], group)
        is_end_near = self._is_same(m, "size", self.size[chunk_bits:], group)
        level = (self._produce - self._consume)[: len(self._produce)]
        m.d.sync += [
            *(head_here.eq(self.head[:chunk_bits]), is_in_ring.eq(is_less(self.head, self.size))),
            has_new.eq(is_in_ring & ~(is_head_near & (head_here == here))),
            at_end.eq(is_end_near & (size_here == here)),
            end.eq(Mux(is_end_near, size_here, self._chunk)),
            # One instruction less than there is room for: only the upper bits count.
            has_room.eq(level[ceil_log2(self._chunk * self._parts) :] < self._chunks - 1),
            word.eq(self.base + place),
        ]
        with m.If(is_head_near & is_less(here, head_here)):
            m.d.sync += end.eq(head_here)

        request = self.memory.request
        beat_bits, word_bits = ceil_log2(self._data_bytes), ceil_log2(WORD_BYTES)
        lane_bits = max(0, beat_bits - word_bits)
        lane = word[:lane_bits]
        m.d.comb += [
            request.p.address.eq(Cat(Const(0, max(beat_bits, word_bits)), word[lane_bits:])),
            request.p.beats.eq(
                ((asked + lane + ((1 << lane_bits) - 1)) >> lane_bits) if lane_bits else asked * self._parts
            ),
        ]
        # A request is one burst: it ends with a block of the longest one.
        block_bits = ceil_log2(block_beats(self._data_bytes)) + beat_bits - word_bits
        until_block = Signal(block_bits + 1)
        m.d.comb += until_block.eq((1 << block_bits) - word[:block_bits])
        clears = Signal()
        advances = Signal()
        with m.FSM() as self._fsm:
            with m.State("LOOK"):
                m.d.comb += clears.eq(stopping | ~self.enable | at_end)
                m.d.sync += asked.eq(end - here)
                with m.If(stopping | ~self.enable):
                    m.d.sync += stopping.eq(~self.enable)
                    with m.If(self.enable):
                        m.next = "CLEARED"
                with m.Elif(at_end):
                    m.next = "CLEARED"
                with m.Elif(has_new & has_room):
                    m.next = "MEASURE"
            with m.State("CLEARED"):
                m.next = "COMPARED"
            with m.State("COMPARED"):
                m.next = "LOOK"
            with m.State("MEASURE"):
                with m.If(is_less(until_block, asked)):
                    m.d.sync += asked.eq(until_block)
                m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [request.valid.eq(1), advances.eq(request.ready)]
                with m.If(request.ready):
                    m.d.sync += [self._left.eq(asked * self._parts), self._comes_more.eq(1), self._lane.eq(lane)]
                    m.next = "RECEIVE"
            with m.State("RECEIVE"):
                with m.If(~self._comes_more):
                    m.next = "LOOK"
        with m.If(~self.enable):
            m.d.sync += stopping.eq(1)
        with m.If(advances):
            m.d.sync += place.eq(place + asked)
        with m.If(clears):
            m.d.sync += place.eq(0)
        # At the end of the ring it waits for the place to be its beginning.
        with m.If(self._fsm.ongoing("LOOK") & ~at_end):
            m.d.sync += self.tail.eq(place)
        with m.If(self._fsm.ongoing("LOOK") & (stopping | ~self.enable)):
            m.d.sync += self.tail.eq(0)

    @staticmethod
    def _is_same(m: Module, name: str, first: Value, second: Value) -> Value:
        """Whether two numbers are the same; pairs of their bits are compared in the cycle before."""
        pairs = [first[bit : bit + 2] == second[bit : bit + 2] for bit in range(0, len(first), 2)]
        equal = Signal(len(pairs), name=f"{name}_equal")
        m.d.sync += equal.eq(Cat(pairs))
        return equal.all()

    def _receive(self, m: Module) -> None:
        """Queue what comes."""
        unpacker, write = self._unpacker, self._write
        connect(m, flipped(self.memory.data), unpacker.beats)
        # What comes is known late in a cycle.
        arrived = Signal(8 * self._part_bytes, reset_less=True)
        m.d.sync += [self._arrives.eq(unpacker.rows.valid), arrived.eq(unpacker.rows.payload)]
        m.d.comb += [
            unpacker.places.valid.eq(self._comes_more),
            *(unpacker.places.p.lane.eq(self._lane), unpacker.places.p.last.eq(self._left == 1)),
            unpacker.rows.ready.eq(1),
            *(write.en.eq(self._arrives), write.addr.eq(self._produce), write.data.eq(arrived)),
        ]
        with m.If(unpacker.rows.valid):
            m.d.sync += [
                *(self._left.eq(self._left - 1), self._comes_more.eq(self._left != 1)),
                self._lane.eq(self._lane + 1),
            ]
        with m.If(self._arrives):
            m.d.sync += self._produce.eq(self._produce + 1)

    def _give_out(self, m: Module) -> Signal:
        """Put instructions together and give them out unless held; returns whether there are any, a cycle late because
        it goes far."""
        instructions, read = self.instructions, self._read
        shown = Signal(WORD_BITS, reset_less=True)
        part = Signal(range(self._parts))
        ends_word = part == self._parts - 1 if self._parts > 1 else Const(1)
        # A cycle late, so that what came with an error waits for `hold`, which is four cycles behind it.
        visible = Signal.like(self._produce)
        m.d.sync += visible.eq(self._produce)
        is_full = Signal()  # all of an instruction has been read
        reads = Signal()
        leaves = Signal()
        ends = Signal()
        comes = Signal()
        is_last = Signal()
        waits = Signal()
        holds = Signal()
        m.d.comb += [
            reads.eq((visible != self._consume) & ~is_full),
            *(read.en.eq(reads), read.addr.eq(self._consume)),
            instructions.payload.eq(shown),
        ]
        with m.If(reads):
            m.d.sync += self._consume.eq(self._consume + 1)
            if self._parts > 1:
                m.d.sync += part.eq(part + 1)
            with m.If(ends_word):
                m.d.sync += is_full.eq(1)
        whole = (comes & is_last) | waits
        # A block of memory shows what was read within a cycle only where that goes no further.
        read_before = Signal.like(read.data, reset_less=True)
        m.d.sync += [
            *(leaves.eq(reads), ends.eq(ends_word), read_before.eq(read.data)),
            *(comes.eq(leaves), is_last.eq(ends)),
            waits.eq(whole & self.hold),
            holds.eq((self._produce != self._consume) | leaves | comes | is_full | self._arrives),
        ]
        with m.If(comes):
            m.d.sync += shown.eq(Cat(shown, read_before)[len(read_before) :])
        with m.If(~instructions.valid):
            m.d.sync += instructions.valid.eq(whole & ~self.hold)
        with m.Elif(instructions.ready):
            m.d.sync += [instructions.valid.eq(0), is_full.eq(0)]
        return holds
