"""Link: delivers messages over a wire that corrupts, loses and repeats bytes."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.serial.link.deframer import Deframer
from openmxu.rtl.serial.link.framer import Framer
from openmxu.rtl.serial.link.receiver import Receiver
from openmxu.rtl.serial.link.transmitter import Transmitter
from openmxu.rtl.serial.messages import byte_layout, byte_stream

__all__ = ["Link"]


class Link(wiring.Component):
    """The device's end: each message arrives once, in order, or not at all.

    Parameters
    ----------
    retransmit_cycles
        Cycles from the end of a frame until its message is sent again.

    Members
    -------
    rx, tx
        Bytes from the wire and to it.
    incoming, outgoing
        Messages from the other end and to it.
    restart
        Set for one cycle when the other end restarts the link: messages in both directions are discarded, even in the
        middle, and all state that depends on them must be reset.
    """

    def __init__(self, retransmit_cycles: int) -> None:
        self._retransmit_cycles = retransmit_cycles
        super().__init__(
            {
                "rx": In(stream.Signature(8, always_ready=True)),
                "tx": Out(stream.Signature(8)),
                "incoming": Out(byte_stream()),
                "outgoing": In(byte_stream()),
                "restart": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.deframer = deframer = Deframer()
        m.submodules.receiver = receiver = Receiver()
        m.submodules.transmitter = transmitter = Transmitter(self._retransmit_cycles)
        m.submodules.framer = framer = Framer()
        # In both directions bytes come late out of memories, and then travel far or through the logic for escapes.
        incoming, frames = RegisterSlice(byte_layout()), RegisterSlice(byte_layout())
        m.submodules.incoming = ResetInserter(transmitter.restart)(incoming)
        m.submodules.frames = frames
        connect(m, flipped(self.rx), deframer.bytes)
        connect(m, deframer.contents, receiver.contents)
        connect(m, receiver.messages, incoming.input)
        connect(m, incoming.output, flipped(self.incoming))
        connect(m, flipped(self.outgoing), transmitter.messages)
        connect(m, transmitter.frames, frames.input)
        connect(m, frames.output, framer.frames)
        connect(m, framer.bytes, flipped(self.tx))
        m.d.comb += [
            receiver.end.eq(deframer.end),
            receiver.good.eq(deframer.good),
            receiver.enable.eq(transmitter.enable),
            receiver.restart.eq(transmitter.restart),
            transmitter.acknowledges.eq(receiver.acknowledges),
            transmitter.acknowledged.eq(receiver.acknowledged),
            transmitter.dealt_with.eq(receiver.dealt_with),
            transmitter.owes.eq(receiver.owes),
            transmitter.synchronizes.eq(receiver.synchronizes),
            transmitter.nonce.eq(receiver.nonce),
            self.restart.eq(transmitter.restart),
        ]
        return m
