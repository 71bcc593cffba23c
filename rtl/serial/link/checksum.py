"""Checksum of frames: CRC-32 by way of a table."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Checksum"]

_ONES = 0xFFFF_FFFF


def _table() -> list[int]:
    """What each byte, all alone, makes of a register of zeros."""
    parameters = CRC32_ISO_HDLC(8)
    # Its value for a byte is that of a register of ones; the difference to that of another byte forgets them.
    values = [parameters.compute([byte]) for byte in range(256)]
    zero = values[0xFF]  # where the byte and the lowest ones of the register are the same
    return [values[byte ^ 0xFF] ^ zero for byte in range(256)]


TABLE = _table()

_BEGIN = next(index for index, entry in enumerate(TABLE) if entry >> 24 == _ONES >> 24)
"""An entry whose highest byte is all ones, which nothing but an entry can set."""


class Checksum(wiring.Component):
    """CRC-32 of IEEE 802.3, a byte in every cycle: a register that is shifted by a byte, and what the table, a block of
    memory, makes of the byte that leaves. That comes a cycle later, so that the checksum is both together.

    Members
    -------
    start
        The next byte is the first one; not together with ``valid``.
    valid, data
        A byte.
    shift
        The checksum moves down by a byte, to be read byte by byte; not together with the others.
    low
        Its lowest byte, from the cycle after.
    matches
        The last bytes were the checksum of those before, lowest byte first.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "valid": In(1),
                "data": In(8),
                "shift": In(1),
                "low": Out(8),
                "matches": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = table = Memory(shape=32, depth=256, init=TABLE, attrs={"ram_style": "block"})
        entry = table.read_port()
        shifted = Signal(24)
        register = Signal(32)
        m.d.comb += [
            register.eq(shifted ^ entry.data),
            self.low.eq(~register[:8]),
            # A message and its checksum leave the same in the register, whatever the message.
            self.matches.eq(register == CRC32_ISO_HDLC(8).residue()),
            entry.en.eq(self.start | self.valid | self.shift),
            entry.addr.eq(Mux(self.start, _BEGIN, Mux(self.shift, 0, register[:8] ^ self.data))),
        ]
        with m.If(self.start):
            m.d.sync += shifted.eq(_ONES ^ TABLE[_BEGIN])
        with m.Elif(self.valid | self.shift):
            m.d.sync += shifted.eq(register >> 8)
        return m
