"""Checksum of frames: CRC-32 with a lookup table."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Checksum"]

_ONES = 0xFFFF_FFFF


def _table() -> list[int]:
    """The register after each byte, from a register of zeros."""
    parameters = CRC32_ISO_HDLC(8)
    # `compute` begins with a register of ones; the XOR with the value of another byte cancels them.
    values = [parameters.compute([byte]) for byte in range(256)]
    zero = values[0xFF]  # this byte cancels the ones in the lowest byte of the register
    return [values[byte ^ 0xFF] ^ zero for byte in range(256)]


TABLE = _table()

_BEGIN = next(index for index, entry in enumerate(TABLE) if entry >> 24 == _ONES >> 24)
"""An entry whose highest byte is all ones, since only an entry can set the highest byte of the register."""


class Checksum(wiring.Component):
    """CRC-32 of IEEE 802.3, one byte per cycle. The table is in block RAM, and its entry for the byte that is shifted
    out of the register comes a cycle later, so that the checksum is the XOR of the shifted register and that entry.

    Members
    -------
    start
        The next byte is the first one; not together with ``valid``.
    valid, data
        A byte.
    shift
        Shift the checksum down by a byte, to read it byte by byte; not together with the others.
    low
        Lowest byte of the checksum, from the next cycle on.
    matches
        The last bytes were the checksum of the bytes before them, lowest byte first.
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
            # A message followed by its checksum always leaves the same residue in the register.
            self.matches.eq(register == CRC32_ISO_HDLC(8).residue()),
            entry.en.eq(self.start | self.valid | self.shift),
            entry.addr.eq(Mux(self.start, _BEGIN, Mux(self.shift, 0, register[:8] ^ self.data))),
        ]
        with m.If(self.start):
            m.d.sync += shifted.eq(_ONES ^ TABLE[_BEGIN])
        with m.Elif(self.valid | self.shift):
            m.d.sync += shifted.eq(register >> 8)
        return m
