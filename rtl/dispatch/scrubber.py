"""Scrubber: clears the memories between one user's programs and the next one's."""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BITS, Opcode
from openmxu.arch.scrub import scrub_program
from openmxu.rtl.common.interfaces import EventLayout

__all__ = ["Scrubber"]


class Scrubber(wiring.Component):
    """Stands between the host and the dispatcher: lets instructions and events through, or clears the memories.

    It needs no port of any memory: the units themselves write zeros when the dispatcher executes
    :func:`openmxu.arch.scrub.scrub_program`. Other registers and queues are written before they are read, so that
    their old contents cannot be read.

    Members
    -------
    instructions, events
        Instructions and events of the host.
    dispatched, happened
        The dispatcher's instructions and events.
    idle
        The dispatcher is between two programs.
    request
        Set for one cycle: clear the memories once the dispatcher is idle.
    pending
        From a request until the memories are clear; the host's instructions wait from the end of the current program
        on.
    scrubs
        The dispatcher executes the scrubber's program.
    clear
        Set in the cycle before ``scrubs``: set the configuration registers to 0.
    """

    def __init__(self, config: Config) -> None:
        self._program = scrub_program(config)
        super().__init__(
            {
                "instructions": In(stream.Signature(WORD_BITS)),
                "events": Out(stream.Signature(EventLayout)),
                "dispatched": Out(stream.Signature(WORD_BITS)),
                "happened": In(stream.Signature(EventLayout)),
                "idle": In(1),
                "request": In(1),
                "pending": Out(1),
                "scrubs": Out(1),
                "clear": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = Array(Const(instruction.word, WORD_BITS) for instruction in self._program)
        step = Signal(range(len(words)))
        between_programs = Signal(init=1)
        offered = Signal()
        holds = Signal()
        m.d.sync += offered.eq(self.dispatched.valid & ~self.dispatched.ready)
        with m.If(self.dispatched.valid & self.dispatched.ready):
            m.d.sync += between_programs.eq(self.dispatched.payload[:8] == Opcode.HALT)
        # A word that has been offered is not withdrawn: its program runs first.
        # A word that has left in the same cycle is not seen by the dispatcher yet.
        is_idle = Signal()
        m.d.sync += is_idle.eq(self.idle & ~(self.dispatched.valid & self.dispatched.ready))
        m.d.comb += holds.eq(self.pending & ~offered & (between_programs | is_idle))
        with m.If(self.request):
            m.d.sync += self.pending.eq(1)
        m.d.comb += self.dispatched.payload.eq(Mux(self.scrubs, words[step], self.instructions.payload))
        with m.FSM():
            with m.State("PASS"):
                with m.If(~holds):
                    m.d.comb += [
                        self.dispatched.valid.eq(self.instructions.valid),
                        self.instructions.ready.eq(self.dispatched.ready),
                    ]
                with m.Elif(is_idle):
                    m.d.comb += self.clear.eq(1)
                    m.d.sync += self.scrubs.eq(1)
                    m.next = "CLEAR"
                connect(m, flipped(self.happened), flipped(self.events))
            with m.State("CLEAR"):
                m.d.comb += self.dispatched.valid.eq(1)
                with m.If(self.dispatched.ready):
                    m.d.sync += step.eq(step + 1)
                    with m.If(step == len(words) - 1):
                        m.d.sync += step.eq(0)
                        m.next = "END"
            with m.State("END"):
                m.d.comb += self.happened.ready.eq(1)
                with m.If(self.happened.valid):
                    m.d.sync += [self.pending.eq(0), self.scrubs.eq(0)]
                    m.next = "PASS"
        return m
