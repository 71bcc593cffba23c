"""Messages as streams of bytes and as layouts, from the tables of :mod:`openmxu.arch.serial`."""

from amaranth.lib import data, stream

from openmxu.arch.serial import MESSAGES, MessageKind

__all__ = ["byte_layout", "byte_stream", "memory_error_layout", "message_layout"]


def byte_layout() -> data.StructLayout:
    """A byte of a message or of a frame; ``last`` marks its last one."""
    return data.StructLayout({"data": 8, "last": 1})


def byte_stream() -> stream.Signature:
    """Messages, byte by byte; the first byte of each is its kind."""
    return stream.Signature(byte_layout())


def message_layout(kind: MessageKind) -> data.StructLayout:
    """All bytes of a message but its data: ``kind``, then its fields."""
    return data.StructLayout({"kind": 8, **{field.name: 8 * field.size for field in MESSAGES[kind].fields}})


def memory_error_layout(address_width: int) -> data.StructLayout:
    """An access that was answered with an error: the status, and the address in the request message."""
    return data.StructLayout({"resp": 2, "addr": address_width})
