"""Framer: adds checksum, escapes and flags to each frame."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.serial import CRC_BYTES, ESCAPE, ESCAPE_MASK, FLAG
from openmxu.rtl.serial.link.checksum import Checksum
from openmxu.rtl.serial.messages import byte_stream

__all__ = ["Framer"]


class Framer(wiring.Component):
    """Sends a flag, the bytes of a frame and of its checksum with escapes, and another flag.

    One byte per cycle, except for those of the checksum, which take two cycles each.

    Members
    -------
    frames
        Bytes of frames.
    bytes
        Bytes for the wire, registered.
    """

    def __init__(self) -> None:
        super().__init__({"frames": In(byte_stream()), "bytes": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checksum = crc = Checksum()
        may_push = Signal()
        escaped = Signal()
        whole = Signal()
        place = Signal(range(CRC_BYTES))
        low = Signal(8, reset_less=True)
        m.d.comb += [
            may_push.eq(~self.bytes.valid | self.bytes.ready),
            crc.data.eq(self.frames.p.data),
        ]
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)

        def push(value: Value | int) -> None:
            m.d.sync += [self.bytes.payload.eq(value), self.bytes.valid.eq(1)]

        def push_escaped(value: Value) -> None:
            """Push a byte in one step or in two; ``whole`` is set with the last one."""
            with m.If(((value == FLAG) | (value == ESCAPE)) & ~escaped):
                push(ESCAPE)
                m.d.sync += escaped.eq(1)
            with m.Else():
                push(value ^ Mux(escaped, ESCAPE_MASK, 0))
                m.d.sync += escaped.eq(0)
                m.d.comb += whole.eq(1)

        with m.FSM():
            with m.State("BEGIN"):
                m.d.comb += crc.start.eq(1)
                with m.If(self.frames.valid & may_push):
                    push(FLAG)
                    m.next = "CONTENTS"
            with m.State("CONTENTS"):
                with m.If(self.frames.valid & may_push):
                    push_escaped(self.frames.p.data)
                    m.d.comb += [self.frames.ready.eq(whole), crc.valid.eq(whole)]
                    with m.If(whole & self.frames.p.last):
                        m.next = "CHECKSUM"
            with m.State("CHECKSUM"):
                # The checksum comes late in the cycle, out of a memory.
                m.d.comb += crc.shift.eq(1)
                m.d.sync += [low.eq(crc.low), place.eq(place + 1)]
                m.next = "CHECKSUM_BYTE"
            with m.State("CHECKSUM_BYTE"):
                with m.If(may_push):
                    push_escaped(low)
                    with m.If(whole):
                        m.next = "CHECKSUM"
                        with m.If(place == 0):
                            m.next = "END"
            with m.State("END"):
                with m.If(may_push):
                    push(FLAG)
                    m.next = "BEGIN"
        return m
