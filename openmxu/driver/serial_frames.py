"""Frames and messages of the serial shell as bytes; see :mod:`openmxu.arch.serial`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from openmxu.arch.serial import (
    CRC_BYTES,
    ESCAPE,
    ESCAPE_MASK,
    FLAG,
    HEADER_BYTES,
    MESSAGE_BYTES,
    MESSAGES,
    FrameKind,
    MessageKind,
)

__all__ = ["Deframer", "Frame", "Message", "decode_message", "encode_frame", "encode_message"]

_ESCAPED = {byte: bytes([ESCAPE, byte ^ ESCAPE_MASK]) for byte in (FLAG, ESCAPE)}
_LONGEST = HEADER_BYTES + MESSAGE_BYTES + CRC_BYTES


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes
    ----------
    kind
    number
        Number of its message, from 0 to 255.
    dealt_with
        Number of the last message that the frame's sender has dealt with.
    contents
    """

    kind: FrameKind
    number: int = 0
    dealt_with: int = 0
    contents: bytes = b""


@dataclass(frozen=True)
class Message:
    """One message: its kind, its fields by name, and its data."""

    kind: MessageKind
    fields: dict[str, int] = field(default_factory=dict)
    data: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame on the wire, including both flags."""
    plain = bytes([frame.kind, frame.number, frame.dealt_with]) + frame.contents
    plain += zlib.crc32(plain).to_bytes(CRC_BYTES, "little")
    # Replace the escape first: otherwise the escape of a flag would be escaped again.
    escaped = plain.replace(bytes([ESCAPE]), _ESCAPED[ESCAPE]).replace(bytes([FLAG]), _ESCAPED[FLAG])
    return bytes([FLAG]) + escaped + bytes([FLAG])


class Deframer:
    """Finds the frames in a stream of bytes, from any position in it.

    Attributes
    ----------
    bad
        Number of pieces between flags that were not a frame, or a corrupted one.
    """

    def __init__(self) -> None:
        self.bad = 0
        self._rest = b""

    def frames(self, received: bytes) -> list[Frame]:
        """The intact frames that end within ``received``, the next bytes of the stream."""
        *pieces, self._rest = (self._rest + received).split(bytes([FLAG]))
        # A piece longer than any frame is not a frame: keep just enough bytes to recognize that.
        self._rest = self._rest[: 2 * _LONGEST + 1]
        return [frame for piece in pieces if piece and (frame := self._decode(piece)) is not None]

    def _decode(self, piece: bytes) -> Frame | None:
        plain = bytearray()
        escaped = False
        for byte in piece:
            if byte == ESCAPE:
                escaped = True
            else:
                plain.append(byte ^ ESCAPE_MASK if escaped else byte)
                escaped = False
        contents, checksum = bytes(plain[:-CRC_BYTES]), plain[-CRC_BYTES:]
        is_good = not escaped and HEADER_BYTES <= len(contents) <= _LONGEST - CRC_BYTES
        if is_good and zlib.crc32(contents).to_bytes(CRC_BYTES, "little") == checksum and contents[0] in set(FrameKind):
            return Frame(FrameKind(contents[0]), contents[1], contents[2], contents[HEADER_BYTES:])
        self.bad += 1
        return None


def encode_message(kind: MessageKind, data: bytes = b"", **fields: int) -> bytes:
    """The bytes of a message; ``fields`` are those of its format."""
    numbers = (fields[item.name].to_bytes(item.size, "little") for item in MESSAGES[kind].fields)
    return b"".join([bytes([kind]), *numbers, data])


def decode_message(contents: bytes) -> Message:
    """The message in the contents of a frame.

    Raises
    ------
    ValueError
        The contents are not a valid message.
    """
    if not contents or contents[0] not in set(MessageKind):
        raise ValueError(f"there is no message {contents[:1].hex() or 'without a byte'}")
    kind = MessageKind(contents[0])
    form = MESSAGES[kind]
    if len(contents) < form.size or (len(contents) > form.size and not form.has_data):
        raise ValueError(f"{kind.name} has {len(contents)} bytes, not {form.size}")
    fields, place = {}, 1
    for item in form.fields:
        fields[item.name] = int.from_bytes(contents[place : place + item.size], "little")
        place += item.size
    return Message(kind, fields, contents[place:])
