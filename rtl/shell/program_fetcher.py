"""Program fetcher: instructions from a ring in host memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import ceil_log2
from openmxu.arch.isa import WORD_BITS, WORD_BYTES
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.countdown import Countdown
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.host.row_unpacker import RowUnpacker

__all__ = ["RING_WIDTH", "ProgramFetcher"]

RING_WIDTH = 28
"""Bits of a place in the ring, counted in instructions."""


class ProgramFetcher(wiring.Component):
    """Reads instructions ahead, as many as there are and its queue has room for, in bursts that end at the end of the
    ring at the latest. It asks for no instruction that it has no room for, so that it always takes what it asked for.

    Places in the ring count instructions. They are read from ``tail`` up to ``head``; at the end of the ring it goes on
    at its beginning.

    Parameters
    ----------
    address_width, data_bytes
        Of the memory port.
    depth
        Instructions that the queue holds.
    chunk
        Instructions that are asked for at a time, at most; half the depth or less, so that the queue never runs dry.

    Members
    -------
    enable
        While not set, nothing is asked for; once what was asked for has come, ``tail`` is 0.
    base, size
        Address of the ring, in instructions, and how many it has; constant while enabled or ``fetching``.
    head
        The place behind the last instruction; nothing is fetched while it is not below ``size``. 0 when not enabled.
    tail
        The place behind the last instruction that has come.
    memory
        Host memory.
    hold
        While set, no further instruction is given out.
    instructions
        For the core.
    fetching
        Instructions are asked for or wait in the queue.
    """

    def __init__(self, address_width: int, data_bytes: int, *, depth: int = 256, chunk: int = 64) -> None:
        if not 1 <= chunk <= depth:
            raise ValueError(f"chunk must be from 1 to depth ({depth}), not {chunk}")
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._depth = depth
        self._chunk = chunk
        super().__init__(
            {
                "enable": In(1),
                "base": In(address_width - ceil_log2(WORD_BYTES)),
                "size": In(RING_WIDTH),
                "head": In(RING_WIDTH),
                "tail": Out(RING_WIDTH),
                "memory": Out(ReadPortSignature(address_width, data_bytes)),
                "hold": In(1),
                "instructions": Out(stream.Signature(WORD_BITS)),
                "fetching": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unpacker = self._unpacker = RowUnpacker(row_bytes=WORD_BYTES, beat_bytes=self._data_bytes)
        m.submodules.places = self._places = RunWalker(ceil_log2(self._chunk + 1), len(self._unpacker.places.p.lane))
        run = self._places.runs.p.shape()
        m.submodules.runs = self._runs = StreamFIFO(run, max(1, self._depth // self._chunk))
        m.submodules.queue = self._queue = SyncFIFOBuffered(width=WORD_BITS, depth=self._depth)
        self._until_end = Countdown(Shape(RING_WIDTH), "until_end")
        m.submodules.request = request = RegisterSlice(self.memory.request.p.shape(), half_rate=True)
        self._request = request.input
        connect(m, request.output, flipped(self.memory.request))
        self._arrives = Signal(name="arrives")
        self._is_asked = self.memory.request.valid | self._runs.output.valid | self._places.busy | self._arrives
        asked = Signal(range(self._chunk + 1))
        asks = Signal()
        self._ask(m, asks, asked)
        self._receive(m, asks, asked)
        return m

    def _ask(self, m: Module, asks: Signal, asked: Signal) -> None:
        """Ask for the next instructions: their number first, then the request and its run."""
        place = Signal(RING_WIDTH)
        target = Signal(RING_WIDTH)
        available = Signal(RING_WIDTH)
        stopping = Signal(init=1)
        request_sent = Signal()
        run_sent = Signal()
        request, run = self._request, self._runs.input
        word = Signal(len(self.base))
        end = Signal(RING_WIDTH)
        m.d.comb += run.p.rows.eq(asked)
        beat_bits, word_bits = ceil_log2(self._data_bytes), ceil_log2(WORD_BYTES)
        if beat_bits <= word_bits:
            m.d.comb += [
                request.p.address.eq(Cat(Const(0, word_bits), word)),
                request.p.beats.eq(asked << (word_bits - beat_bits)),
            ]
        else:
            lane_bits = beat_bits - word_bits
            lane = word[:lane_bits]
            m.d.comb += [
                request.p.address.eq(Cat(Const(0, beat_bits), word[lane_bits:])),
                request.p.beats.eq((asked + lane + ((1 << lane_bits) - 1)) >> lane_bits),
                run.p.lane.eq(lane),
            ]

        # Whether the ring has such a place is known with the place, a cycle after it was written.
        head, is_in_ring = Signal(RING_WIDTH), Signal()
        m.d.sync += [head.eq(self.head), is_in_ring.eq(is_less(self.head, self.size))]
        has_room = self._has_room(m, asks, asked)
        with m.If(~self.enable):
            m.d.sync += stopping.eq(1)
        with m.FSM() as fsm:
            with m.State("LOOK"):
                m.d.sync += target.eq(Mux(is_less(head, place), self.size, head))
                with m.If(stopping | ~self.enable):
                    with m.If(~self._is_asked):
                        m.d.sync += [
                            *(place.eq(0), self.tail.eq(0), stopping.eq(~self.enable)),
                            *self._until_end.start(self.size),
                        ]
                with m.Elif((head != place) & is_in_ring & has_room):
                    m.next = "MEASURE"
            with m.State("MEASURE"):
                m.d.sync += available.eq(target - place)
                m.next = "COUNT"
            with m.State("COUNT"):
                m.d.sync += [
                    asked.eq(Mux(is_less(available, self._chunk), available, self._chunk)),
                    word.eq(self.base + place),
                ]
                m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [
                    request.valid.eq(~request_sent),
                    run.valid.eq(~run_sent),
                    asks.eq((request_sent | request.ready) & (run_sent | run.ready)),
                ]
                m.d.sync += [
                    request_sent.eq((request_sent | request.ready) & ~asks),
                    run_sent.eq((run_sent | run.ready) & ~asks),
                ]
                m.d.sync += end.eq(place + asked)
                with m.If(asks):
                    m.next = "STEP"
            with m.State("STEP"):
                m.d.sync += place.eq(Mux(end == self.size, 0, end))
                m.next = "LOOK"
        # All but the first of it is a cycle late, because it goes far.
        holds = Signal()
        m.d.sync += holds.eq(self._is_asked | (self._queue.level != 0))
        m.d.comb += self.fetching.eq(~fsm.ongoing("LOOK") | holds)

    def _has_room(self, m: Module, asks: Signal, asked: Signal) -> Signal:
        """Whether the queue has room for another chunk, two cycles after one was asked for."""
        has_asked = Signal()
        m.d.sync += has_asked.eq(asks)
        room = Signal(range(self._depth + 1), init=self._depth)
        left = Signal()
        has_room = Signal()
        m.d.comb += has_room.eq(room >= self._chunk)
        m.d.sync += left.eq(self._queue.r_rdy & self._queue.r_en)
        m.d.sync += room.eq(room - Mux(has_asked, asked, 0) + left)
        return has_room

    def _receive(self, m: Module, asks: Signal, asked: Signal) -> None:
        """Queue what comes, and give it out unless held."""
        unpacker, queue = self._unpacker, self._queue
        connect(m, self._runs.output, self._places.runs)
        connect(m, self._places.places, unpacker.places)
        m.submodules.beats = beats = RegisterSlice(self.memory.data.p.shape())
        connect(m, flipped(self.memory.data), beats.input)
        connect(m, beats.output, unpacker.beats)
        # What comes is known late in a cycle, and much is counted with it.
        arrived = Signal(WORD_BITS, reset_less=True)
        m.d.sync += [self._arrives.eq(unpacker.rows.valid), arrived.eq(unpacker.rows.payload)]
        m.d.comb += [unpacker.rows.ready.eq(1), queue.w_en.eq(self._arrives), queue.w_data.eq(arrived)]
        with m.If(self._arrives):
            with m.If(self._until_end.last):
                m.d.sync += [self.tail.eq(0), *self._until_end.start(self.size)]
            with m.Else():
                m.d.sync += [self.tail.eq(self.tail + 1), *self._until_end.step()]
        # The queue shows its oldest instruction until that is taken. A register that does nothing but follow can be the
        # block RAM's own; the next instruction is there three cycles after one was taken.
        instructions = self.instructions
        shown = Signal(WORD_BITS, reset_less=True)
        taken = Signal()
        m.d.comb += [instructions.payload.eq(shown), queue.r_en.eq(taken)]
        m.d.sync += [shown.eq(queue.r_data), taken.eq(instructions.valid & instructions.ready)]
        with m.If(instructions.valid):
            m.d.sync += instructions.valid.eq(~instructions.ready)
        with m.Else():
            m.d.sync += instructions.valid.eq(queue.r_rdy & ~taken & ~self.hold)
