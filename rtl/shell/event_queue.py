"""Event queue: what the core tells the host waits here until the host has read it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.events import EventKind
from openmxu.rtl.common.interfaces import EventLayout
from openmxu.rtl.common.stream_fifo import StreamFIFO

__all__ = ["EventQueue"]


class EventQueue(wiring.Component):
    """Keeps events in order, and the last fault.

    Parameters
    ----------
    depth
        Events that it holds; while it is full, the core waits. With 0 an event waits at the port until it is popped.

    Members
    -------
    events
        From the core.
    first, valid, level
        The first event, whether there is one, and how many there are.
    pop
        Takes the first event away.
    happened
        One bit for each :class:`~openmxu.arch.events.EventKind`, set for one cycle when such an event comes.
    fault, fault_index
        Code and index of the last fault; 0 before the first.
    """

    def __init__(self, depth: int = 16) -> None:
        self._depth = depth
        super().__init__(
            {
                "events": In(stream.Signature(EventLayout)),
                "first": Out(EventLayout),
                "valid": Out(1),
                "level": Out(range(max(1, depth) + 1)),
                "pop": In(1),
                "happened": Out(len(EventKind)),
                "fault": Out(4),
                "fault_index": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        comes = Signal()
        if self._depth:
            m.submodules.queue = queue = StreamFIFO(EventLayout, self._depth)
            connect(m, flipped(self.events), queue.input)
            output, level, new = queue.output, queue.level, self.events.ready
        else:
            waited = Signal()
            m.d.sync += waited.eq(self.events.valid & ~self.events.ready)
            output, level, new = self.events, self.events.valid, ~waited
        m.d.comb += [
            self.first.eq(output.payload),
            self.valid.eq(output.valid),
            self.level.eq(level),
            output.ready.eq(self.pop),
            comes.eq(self.events.valid & new),
        ]
        for kind in EventKind:
            m.d.comb += self.happened[kind].eq(comes & (self.events.p.kind == kind))
        with m.If(self.happened[EventKind.FAULT]):
            m.d.sync += [self.fault.eq(self.events.p.fault), self.fault_index.eq(self.events.p.index)]
        return m
