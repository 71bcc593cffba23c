"""The protocol between a computer and a device with a serial shell, as data.

Bytes carry frames, frames carry messages. The shell's hardware and the driver derive from these tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "BAUD_RATES",
    "CRC_BYTES",
    "DATA_BYTES",
    "DEFAULT_BAUD",
    "ESCAPE",
    "ESCAPE_MASK",
    "FLAG",
    "HEADER_BYTES",
    "LINK_VERSION",
    "MESSAGES",
    "MESSAGE_BYTES",
    "NONCE_BYTES",
    "FrameKind",
    "MessageField",
    "MessageFormat",
    "MessageKind",
    "ReplyStatus",
]

DEFAULT_BAUD = 1_000_000

BAUD_RATES = (DEFAULT_BAUD, 3_000_000, 2_000_000, 115_200)
"""Rates at which a computer looks for a device whose rate it does not know, the likeliest first."""

LINK_VERSION = 1
"""Version of the protocol; incremented when frames or messages change."""

FLAG = 0x7E
"""Delimits frames: sent before and after each one, and nowhere else."""

ESCAPE = 0x7D
"""Within a frame, this byte and :data:`FLAG` are sent as this byte and their exclusive or with :data:`ESCAPE_MASK`."""

ESCAPE_MASK = 0x20

HEADER_BYTES = 3
"""Bytes of a frame's header: its kind, its number, and the number of the last message that its sender has dealt
with."""

CRC_BYTES = 4
"""CRC-32 of IEEE 802.3 over header and contents, lowest byte first."""

NONCE_BYTES = 4

DATA_BYTES = 256
"""Bytes of memory that a message carries, at most."""


class FrameKind(IntEnum):
    """First byte of a frame."""

    MESSAGE = 1
    ACKNOWLEDGE = 2
    SYNCHRONIZE = 3
    SYNCHRONIZED = 4


class MessageKind(IntEnum):
    """First byte of a message. Those of the device have bit 7."""

    READ_REGISTER = 0x01
    WRITE_REGISTER = 0x02
    PROGRAM_DATA = 0x10
    HOST_DATA = 0x11
    WEIGHT_DATA = 0x12
    HOST_WRITTEN = 0x13
    REGISTER_VALUE = 0x81
    INTERRUPT = 0x82
    READ_PROGRAM = 0x90
    READ_HOST = 0x91
    READ_WEIGHTS = 0x92
    WRITE_HOST = 0x93

    @property
    def is_from_device(self) -> bool:
        """Whether the device, rather than the computer, sends it."""
        return self.value >= 0x80


class ReplyStatus(IntEnum):
    """Outcome of a memory access, encoded as in AXI."""

    OKAY = 0
    ERROR = 2
    NO_MEMORY = 3


@dataclass(frozen=True)
class MessageField:
    """A number in a message, lowest byte first."""

    name: str
    size: int


@dataclass(frozen=True)
class MessageFormat:
    """The contents of a message after its kind: its fields, and data if it has any."""

    fields: tuple[MessageField, ...]
    has_data: bool
    description: str

    @property
    def size(self) -> int:
        """Bytes of the message without data."""
        return 1 + sum(field.size for field in self.fields)


_OFFSET = MessageField("offset", 2)
_VALUE = MessageField("value", 4)
_STATUS = MessageField("status", 1)
_ADDRESS = MessageField("address", 8)
_LENGTH = MessageField("length", 2)

MESSAGES: dict[MessageKind, MessageFormat] = {
    MessageKind.READ_REGISTER: MessageFormat((_OFFSET,), False, "asks for a word of the registers"),
    MessageKind.WRITE_REGISTER: MessageFormat(
        (_OFFSET, _VALUE), False, "writes one; its acknowledgement is the answer"
    ),
    MessageKind.PROGRAM_DATA: MessageFormat((_STATUS,), True, "answers READ_PROGRAM"),
    MessageKind.HOST_DATA: MessageFormat((_STATUS,), True, "answers READ_HOST"),
    MessageKind.WEIGHT_DATA: MessageFormat((_STATUS,), True, "answers READ_WEIGHTS"),
    MessageKind.HOST_WRITTEN: MessageFormat((_STATUS,), False, "answers WRITE_HOST: later reads see the bytes"),
    MessageKind.REGISTER_VALUE: MessageFormat((_VALUE,), False, "answers READ_REGISTER"),
    MessageKind.INTERRUPT: MessageFormat((), False, "the interrupt has been set; it may be clear again"),
    MessageKind.READ_PROGRAM: MessageFormat((_ADDRESS, _LENGTH), False, "asks for instructions in host memory"),
    MessageKind.READ_HOST: MessageFormat((_ADDRESS, _LENGTH), False, "asks for data in host memory"),
    MessageKind.READ_WEIGHTS: MessageFormat((_ADDRESS, _LENGTH), False, "asks for data in weight memory"),
    MessageKind.WRITE_HOST: MessageFormat((_ADDRESS,), True, "writes host memory"),
}
"""The format of every message."""

MESSAGE_BYTES = max(item.size + DATA_BYTES * item.has_data for item in MESSAGES.values())
"""Bytes of the longest message."""
