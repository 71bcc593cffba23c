"""Conversion of messages and frames to and from the payloads of byte streams."""

from __future__ import annotations

from collections.abc import Callable

from openmxu.rtl.serial.messages import byte_layout
from tb.bench import Bench, Sink
from tb.models.payloads import pack, unpack

__all__ = ["collect", "payloads"]


def payloads(message: bytes) -> list[int]:
    """The payloads that carry a message."""
    end = len(message) - 1
    return [pack(byte_layout(), {"data": byte, "last": place == end}) for place, byte in enumerate(message)]


def collect(
    bench: Bench, name: str, backpressure: float, on_message: Callable[[bytes], None] = lambda message: None
) -> tuple[Sink, list[bytes]]:
    """A sink for a stream of messages, and the list to which it appends them."""
    messages: list[bytes] = []
    held = bytearray()

    def take(payload: int) -> None:
        byte = unpack(byte_layout(), payload)
        held.append(byte.data)
        if byte.last:
            messages.append(bytes(held))
            held.clear()
            on_message(messages[-1])

    return bench.sink(name, backpressure, on_transfer=take), messages
