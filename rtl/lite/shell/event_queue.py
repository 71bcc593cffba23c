"""Event queue of the lite profile."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.events import EventKind
from openmxu.rtl.common.interfaces import EventLayout

__all__ = ["LiteEventQueue"]


class LiteEventQueue(wiring.Component):
    """:class:`~openmxu.rtl.shell.event_queue.EventQueue` without room: the core's event waits where it is until the
    host has read it, and the core with it.

    Members
    -------
    events
        From the core.
    first, valid, level
        The event, whether there is one, and how many there are.
    pop
        Takes the event away.
    happened
        One bit for each :class:`~openmxu.arch.events.EventKind`, set for one cycle when such an event comes.
    fault, fault_index
        Code and index of the last fault; 0 before the first.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "events": In(stream.Signature(EventLayout)),
                "first": Out(EventLayout),
                "valid": Out(1),
                "level": Out(1),
                "pop": In(1),
                "happened": Out(len(EventKind)),
                "fault": Out(4),
                "fault_index": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waited = Signal()
        m.d.comb += [
            self.first.eq(self.events.payload),
            self.valid.eq(self.events.valid),
            self.level.eq(self.events.valid),
            self.events.ready.eq(self.pop),
        ]
        m.d.sync += waited.eq(self.events.valid & ~self.events.ready)
        for kind in EventKind:
            m.d.comb += self.happened[kind].eq(self.events.valid & ~waited & (self.events.p.kind == kind))
        with m.If(self.happened[EventKind.FAULT]):
            m.d.sync += [self.fault.eq(self.events.p.fault), self.fault_index.eq(self.events.p.index)]
        return m
