"""Interfaces between a shell and its buses: accesses of registers, bursts, and the errors of memories."""

from amaranth.lib import data

from openmxu.arch.config import ceil_log2

__all__ = [
    "BURST_BEATS",
    "PAGE_BYTES",
    "REGISTER_WIDTH",
    "access_layout",
    "block_beats",
    "number_width",
    "read_error_layout",
    "write_error_layout",
]

BURST_BEATS = 256
"""The most beats that a burst may have."""

PAGE_BYTES = 4096
"""A burst may not cross a multiple of this many bytes."""

REGISTER_WIDTH = 32
"""Bits of a word of the register map."""


def access_layout(address_width: int) -> data.StructLayout:
    """A read or a write of one word; ``word`` is its address in words."""
    return data.StructLayout({"word": address_width - 2, "write": 1, "data": REGISTER_WIDTH})


def block_beats(data_bytes: int) -> int:
    """The longest burst for beats of ``data_bytes``; no burst crosses a multiple of it."""
    return min(BURST_BEATS, PAGE_BYTES // data_bytes)


def number_width(clients: int) -> int:
    """Bits of the number of one of so many clients, at least 1."""
    return max(1, ceil_log2(clients))


def read_error_layout(address_width: int, clients: int) -> data.StructLayout:
    """A beat that came with an error: the number of its client, the reply, and the address of its burst."""
    return data.StructLayout({"client": number_width(clients), "resp": 2, "addr": address_width})


def write_error_layout(address_width: int) -> data.StructLayout:
    """A burst that was answered with an error: the reply and the address of the burst."""
    return data.StructLayout({"resp": 2, "addr": address_width})
