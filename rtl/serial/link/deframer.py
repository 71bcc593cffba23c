"""Deframer: finds the frames in a stream of bytes and verifies their checksums."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.serial import CRC_BYTES, ESCAPE, ESCAPE_MASK, FLAG
from openmxu.rtl.serial.link.checksum import Checksum

__all__ = ["Deframer"]


class Deframer(wiring.Component):
    """Takes a byte in every cycle. The frame after a flag is found, whatever came before the flag.

    Members
    -------
    bytes
        Bytes from the wire.
    contents
        Bytes of a frame without its checksum, before the checksum is verified.
    end, good
        A frame has ended, and whether its checksum was right. Consecutive flags do not end a frame.
    """

    def __init__(self) -> None:
        always = {"always_ready": True}
        super().__init__(
            {
                "bytes": In(stream.Signature(8, **always)),
                "contents": Out(stream.Signature(8, **always)),
                "end": Out(1),
                "good": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checksum = crc = Checksum()
        # The last bytes of a frame are its checksum: a byte is passed on once that many have come after it.
        held = [Signal(8, name=f"held_{index}", reset_less=True) for index in range(CRC_BYTES)]
        count = Signal(range(CRC_BYTES + 1))
        escaped = Signal()
        byte = Signal(8)
        m.d.comb += [byte.eq(self.bytes.payload ^ Mux(escaped, ESCAPE_MASK, 0)), crc.data.eq(byte)]
        m.d.sync += [self.contents.valid.eq(0), self.contents.payload.eq(held[-1]), self.end.eq(0)]
        with m.If(self.bytes.valid):
            with m.If(self.bytes.payload == FLAG):
                m.d.comb += crc.start.eq(1)
                m.d.sync += [
                    self.end.eq((count != 0) | escaped),
                    self.good.eq(crc.matches & (count == CRC_BYTES) & ~escaped),
                    count.eq(0),
                    escaped.eq(0),
                ]
            with m.Elif(self.bytes.payload == ESCAPE):
                # Two in a row are never sent; the checksum detects them.
                m.d.sync += escaped.eq(1)
            with m.Else():
                m.d.comb += crc.valid.eq(1)
                m.d.sync += escaped.eq(0)
                m.d.sync += [later.eq(earlier) for earlier, later in zip([byte, *held], held, strict=False)]
                with m.If(count == CRC_BYTES):
                    m.d.sync += self.contents.valid.eq(1)
                with m.Else():
                    m.d.sync += count.eq(count + 1)
        return m
