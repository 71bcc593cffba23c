"""The table for the checksum of frames."""

import zlib

from openmxu.rtl.serial.link.checksum import TABLE


def test_table_makes_the_checksum_of_zlib():
    for data in (b"", b"\0", b"123456789", bytes(range(256))):
        register = 0xFFFF_FFFF
        for byte in data:
            register = register >> 8 ^ TABLE[(register ^ byte) & 0xFF]
        assert register ^ 0xFFFF_FFFF == zlib.crc32(data)
