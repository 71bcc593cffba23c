"""Frames and messages as bytes: encoding, decoding, and damage."""

from __future__ import annotations

import random

import pytest
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from hypothesis import given
from hypothesis import strategies as st

from openmxu.arch.serial import DATA_BYTES, FLAG, MESSAGE_BYTES, MESSAGES, FrameKind, MessageKind
from openmxu.driver.serial_frames import Deframer, Frame, decode_message, encode_frame, encode_message
from openmxu.sim.noisy_wire import DAMAGES

FRAMES = st.builds(
    Frame, st.sampled_from(FrameKind), st.integers(0, 255), st.integers(0, 255), st.binary(max_size=MESSAGE_BYTES)
)


def test_bytes_of_a_frame() -> None:
    """Bytes determined by hand, with the checksum of 02 00 7e as Amaranth computes it."""
    assert CRC32_ISO_HDLC(8).compute(b"\x02\x00\x7e") == 0x4B785147
    assert encode_frame(Frame(FrameKind.ACKNOWLEDGE, 0, 0x7E)).hex(" ") == "7e 02 00 7d 5e 47 51 78 4b 7e"


@given(st.lists(FRAMES, max_size=5), st.integers(0), st.binary(max_size=20))
def test_round_trip(frames: list[Frame], seed: int, noise: bytes) -> None:
    """Frames are found in pieces of any size, and after any bytes."""
    wire = noise + bytes([FLAG]) + b"".join(map(encode_frame, frames))
    generator, deframer, got = random.Random(seed), Deframer(), []
    while wire:
        count = generator.randrange(1, 40)
        got += deframer.frames(wire[:count])
        wire = wire[count:]
    assert got[-len(frames) :] == frames if frames else got == []


@given(FRAMES, FRAMES, st.sampled_from(sorted(DAMAGES)), st.integers(0))
def test_damage_is_found(frame: Frame, following: Frame, name: str, seed: int) -> None:
    """A damaged frame is never taken for another frame, and the frame after it is found."""
    damaged = DAMAGES[name](bytearray(encode_frame(frame)), random.Random(seed))
    got = Deframer().frames(bytes(damaged) + encode_frame(following))
    assert got[-1] == following
    assert set(got[:-1]) <= {frame}


def test_an_endless_frame_is_not_stored() -> None:
    deframer = Deframer()
    for _ in range(1000):
        assert deframer.frames(bytes(1000)) == []
    assert deframer.frames(encode_frame(frame := Frame(FrameKind.MESSAGE, 1, 2, b"x"))) == [frame]
    assert deframer.bad == 1


@pytest.mark.parametrize("kind", MessageKind)
def test_messages(kind: MessageKind) -> None:
    form = MESSAGES[kind]
    fields = {item.name: (1 << 8 * item.size) - 2 for item in form.fields}
    data = bytes(DATA_BYTES) if form.has_data else b""
    message = decode_message(encode_message(kind, data, **fields))
    assert (message.kind, message.fields, message.data) == (kind, fields, data)
    assert len(encode_message(kind, data, **fields)) <= MESSAGE_BYTES


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (b"", "there is no message without a byte"),
        (b"\x7f", "there is no message 7f"),
        (b"\x01\x02", "READ_REGISTER has 2 bytes, not 3"),
        (b"\x01\x02\x03\x04", "READ_REGISTER has 4 bytes, not 3"),
        (b"\x90", "READ_PROGRAM has 1 bytes, not 11"),
    ],
)
def test_invalid_messages(contents: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        decode_message(contents)
