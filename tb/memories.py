"""Bus models: memories behind the core's ports, and the unified buffer behind a unit's ports."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
from numpy.typing import NDArray

from openmxu.rtl.common.interfaces import burst_layout, write_beat_layout
from tb.bench import CONFIG, Agent, Bench
from tb.models.payloads import row_of, unpack

__all__ = ["ReadMemory", "RowReader", "RowWriter", "WriteMemory"]


def _burst(address_width: int, payload: int, data_bytes: int, length: int) -> tuple[int, int]:
    """First byte and number of beats of a request, which must be legal."""
    burst = unpack(burst_layout(address_width), payload)
    assert burst.address % data_bytes == 0, f"burst at {burst.address:#x} is not aligned to beats"
    assert burst.beats > 0, f"burst at {burst.address:#x} has no beats"
    end = -(-length // data_bytes) * data_bytes
    assert burst.address + burst.beats * data_bytes <= end, f"burst at {burst.address:#x} leaves the memory"
    return burst.address, burst.beats


class ReadMemory:
    """Serves a read port; the data of a burst follows after a random latency, with pauses.

    Attributes
    ----------
    bursts
        Address and beats of every request.
    """

    def __init__(
        self, bench: Bench, name: str, memory: NDArray[np.uint8], address_width: int, data_bytes: int, stall: float
    ) -> None:
        self._bench = bench
        self.memory = memory
        self._width = address_width
        self._data_bytes = data_bytes
        self.bursts: list[tuple[int, int]] = []
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._stall = stall
        self.requests = bench.sink(f"{name}__request", stall, on_transfer=self._accept)
        self.data = bench.source(f"{name}__data", stall)
        bench.add(_EveryCycle(self._serve))

    def _accept(self, payload: int) -> None:
        address, beats = _burst(self._width, payload, self._data_bytes, self.memory.size)
        self.bursts.append((address, beats))
        latency = random.randrange(30) if random.random() < self._stall else 1
        self._waiting.append((self._bench.cycle + latency, address, beats))

    def _serve(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._bench.cycle:
            _, address, beats = self._waiting.popleft()
            for place in range(address, address + beats * self._data_bytes, self._data_bytes):
                # Bytes beyond the end of the memory are random.
                beat = bytearray(random.randbytes(self._data_bytes))
                known = self.memory[place : place + self._data_bytes].tobytes()
                beat[: len(known)] = known
                self.data.send(int.from_bytes(beat, "little"))

    @property
    def is_idle(self) -> bool:
        """Whether every burst has been answered."""
        return not self._waiting and self.data.is_empty


class WriteMemory:
    """Serves a write port: requests before or after their data, acknowledgements after a random latency.

    Attributes
    ----------
    bursts
        Address and beats of every request.
    """

    def __init__(
        self, bench: Bench, name: str, memory: NDArray[np.uint8], address_width: int, data_bytes: int, stall: float
    ) -> None:
        self._bench = bench
        self.memory = memory
        self._width = address_width
        self._data_bytes = data_bytes
        self._layout = write_beat_layout(data_bytes)
        self._stall = stall
        self.bursts: list[tuple[int, int]] = []
        self._open: deque[tuple[int, int]] = deque()
        self._beats: deque[int] = deque()
        self._acknowledgements: deque[int] = deque()
        self.requests = bench.sink(f"{name}__request", stall, on_transfer=self._accept)
        self.data = bench.sink(f"{name}__data", stall, on_transfer=self._beats.append)
        self.done = bench.source(f"{name}__done", stall)
        bench.add(_EveryCycle(self._serve))

    def _accept(self, payload: int) -> None:
        burst = _burst(self._width, payload, self._data_bytes, self.memory.size)
        self.bursts.append(burst)
        self._open.append(burst)

    def _serve(self) -> None:
        while self._open and len(self._beats) >= self._open[0][1]:
            address, beats = self._open.popleft()
            for index in range(beats):
                beat = unpack(self._layout, self._beats.popleft())
                assert beat.last == (index == beats - 1), "`last` does not mark the last beat of a burst"
                self._write(address + index * self._data_bytes, beat.data, beat.strobe)
            latency = random.randrange(20) if random.random() < self._stall else 1
            self._acknowledgements.append(self._bench.cycle + latency)
        while self._acknowledgements and self._acknowledgements[0] <= self._bench.cycle:
            self._acknowledgements.popleft()
            self.done.send(random.getrandbits(1))

    def _write(self, address: int, data: int, strobe: int) -> None:
        for index in range(self._data_bytes):
            if strobe >> index & 1:
                assert address + index < self.memory.size, f"a strobe selects byte {address + index:#x}"
                self.memory[address + index] = data >> (8 * index) & 0xFF

    @property
    def is_idle(self) -> bool:
        """Whether every burst has been acknowledged."""
        return not self._open and not self._beats and not self._acknowledgements and self.done.is_empty


class RowReader(Agent):
    """Unified buffer behind a unit's read port: returns each row exactly ``latency`` cycles after its request."""

    def __init__(self, bench: Bench, name: str, rows: NDArray[np.uint8], latency: int, stall: float) -> None:
        self._valid, self._payload = bench.port(f"{name}__response__valid"), bench.port(f"{name}__response__payload")
        self._rows = rows
        self._pipeline: deque[int | None] = deque([None] * latency, maxlen=latency)
        self._taken: int | None = None
        bench.add(self)
        self.requests = bench.sink(f"{name}__request", stall, on_transfer=self._accept)

    def _accept(self, address: int) -> None:
        # Called after `sample` of this agent in the same cycle, so the last entry is that of this cycle.
        assert address < len(self._rows), f"row {address} is outside the unified buffer"
        self._pipeline[-1] = row_of(self._rows[address])

    def sample(self) -> None:
        self._pipeline.append(None)

    def drive(self) -> None:
        row = self._pipeline[0]
        self._valid.value = int(row is not None)
        self._payload.value = random.getrandbits(8 * CONFIG.size) if row is None else row


class RowWriter:
    """Unified buffer behind a unit's write port.

    Attributes
    ----------
    written
        Addresses in the order in which they were written.
    """

    def __init__(self, bench: Bench, name: str, rows: NDArray[np.uint8], stall: float) -> None:
        self._rows = rows
        self.written: list[int] = []
        self.requests = bench.sink(f"{name}__request", stall, on_transfer=self._accept)

    def _accept(self, payload: int) -> None:
        width = CONFIG.unified_buffer_address_width
        address, row = payload & ((1 << width) - 1), payload >> width
        assert address < len(self._rows), f"row {address} is outside the unified buffer"
        self._rows[address] = np.frombuffer(row.to_bytes(CONFIG.size, "little"), np.uint8)
        self.written.append(address)


class _EveryCycle(Agent):
    def __init__(self, function) -> None:
        self.sample = function
