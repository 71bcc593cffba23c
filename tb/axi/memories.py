"""Memory models behind the AXI channels of a unit, which are streams here."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.rtl.axi.channels import (
    address_layout,
    read_data_layout,
    response_layout,
    write_data_layout,
)
from openmxu.rtl.shell.interfaces import BURST_BEATS, PAGE_BYTES
from tb.bench import Agent, Bench
from tb.models.payloads import pack, unpack

__all__ = ["Burst", "ReadChannels", "WriteChannels"]

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass
class Burst:
    """A burst, the first cycle in which it may be answered, and its response code."""

    address: int
    beats: int
    ready: int = 0
    reply: int = OKAY


class _Channels(Agent):
    """The common part of reading and writing: bursts are checked, and answered after a latency."""

    def __init__(
        self, bench: Bench, memory: NDArray[np.uint8], address_width: int, data_bytes: int, stall: float, latency: int
    ) -> None:
        self.bench = bench
        self.memory = memory
        self.data_bytes = data_bytes
        self.bursts: list[tuple[int, int]] = []
        self.errors: list[tuple[int, int]] = []
        self.error_probability = 0.0
        self._layout = address_layout(address_width)
        self._stall = stall
        self._latency = latency

    def accept(self, payload: int) -> Burst:
        """Decode the payload of an address channel into a burst, which must be legal."""
        fields = unpack(self._layout, payload)
        burst = Burst(fields.addr, fields.len + 1)
        end = burst.address + burst.beats * self.data_bytes
        assert burst.address % self.data_bytes == 0, f"burst at {burst.address:#x} is not aligned to beats"
        assert burst.beats <= BURST_BEATS
        assert burst.address // PAGE_BYTES == (end - 1) // PAGE_BYTES, f"burst at {burst.address:#x} crosses 4 KiB"
        assert end <= self.memory.size, f"burst at {burst.address:#x} leaves the memory"
        self.bursts.append((burst.address, burst.beats))
        late = random.randrange(30) if random.random() < self._stall else 0
        burst.ready = self.bench.cycle + self._latency + late
        if random.random() < self.error_probability:
            burst.reply = random.choice([SLVERR, DECERR])
            self.errors.append((burst.address, burst.reply))
        return burst


class ReadChannels(_Channels):
    """Serves ``<name>__ar`` and ``<name>__r``. An error is reported in one beat of its burst.

    Attributes
    ----------
    bursts, errors
        Address and beats of every burst; address and response of those with an error.
    error_probability
        Probability of an error in each burst from now on.
    """

    def __init__(self, bench, name, memory, address_width, data_bytes, stall, latency=1) -> None:
        super().__init__(bench, memory, address_width, data_bytes, stall, latency)
        self._waiting: deque[Burst] = deque()
        self._beat = read_data_layout(data_bytes)
        self.addresses = bench.sink(
            f"{name}__ar", stall, on_transfer=lambda payload: self._waiting.append(self.accept(payload))
        )
        self.beats = bench.source(f"{name}__r", stall)
        bench.add(self)

    def sample(self) -> None:
        while self._waiting and self._waiting[0].ready <= self.bench.cycle:
            burst = self._waiting.popleft()
            bad = random.randrange(burst.beats) if burst.reply else -1
            for index in range(burst.beats):
                place = burst.address + index * self.data_bytes
                word = int.from_bytes(self.memory[place : place + self.data_bytes].tobytes(), "little")
                reply = burst.reply if index == bad else random.choice([0, 0, 0, 1])  # EXOKAY is not an error
                self.beats.send(pack(self._beat, {"data": word, "resp": reply, "last": index == burst.beats - 1}))

    @property
    def is_idle(self) -> bool:
        """Whether every burst has been answered."""
        return not self._waiting and self.beats.is_empty


class WriteChannels(_Channels):
    """Serves ``<name>__aw``, ``<name>__w`` and ``<name>__b``; data may come before or after its address."""

    def __init__(self, bench, name, memory, address_width, data_bytes, stall, latency=1) -> None:
        super().__init__(bench, memory, address_width, data_bytes, stall, latency)
        self._open: deque[Burst] = deque()
        self._data: deque[int] = deque()
        self._done: deque[Burst] = deque()
        self._beat = write_data_layout(data_bytes)
        self.strobed = 0
        self.addresses = bench.sink(
            f"{name}__aw", stall, on_transfer=lambda payload: self._open.append(self.accept(payload))
        )
        self.beats = bench.sink(f"{name}__w", stall, on_transfer=self._data.append)
        self.replies = bench.source(f"{name}__b", stall)
        bench.add(self)

    def sample(self) -> None:
        while self._open and len(self._data) >= self._open[0].beats:
            burst = self._open.popleft()
            for index in range(burst.beats):
                beat = unpack(self._beat, self._data.popleft())
                assert beat.last == (index == burst.beats - 1), "`last` does not mark the last beat of a burst"
                self._write(burst.address + index * self.data_bytes, beat.data, beat.strb)
            burst.ready = max(burst.ready, self.bench.cycle + self._latency)
            self._done.append(burst)
        while self._done and self._done[0].ready <= self.bench.cycle:
            self.replies.send(pack(response_layout(), {"resp": self._done.popleft().reply}))

    def _write(self, address: int, data: int, strobe: int) -> None:
        for index in range(self.data_bytes):
            if strobe >> index & 1:
                self.strobed += 1
                self.memory[address + index] = data >> (8 * index) & 0xFF

    @property
    def is_idle(self) -> bool:
        """Whether every burst has been answered."""
        return not self._open and not self._data and not self._done and self.replies.is_empty
