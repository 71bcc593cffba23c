"""A built library as a Python object: ctypes declarations, independent of the core's function."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_bool, c_char_p, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeatTime", "Model", "Port", "ProtocolError", "Result", "StallPattern", "Status"]


class Result(IntEnum):
    """Why a run stopped; ``Result`` of ``harness.h``."""

    RUNNING = 0
    ENDED = 1
    FAULTED = 2
    NO_TRANSFERS = 3
    FAILED = 4


class ProtocolError(IntEnum):
    """Violations of protocol by the core; ``Error`` of ``streams.h``."""

    NO_ERROR = 0
    MISALIGNED = 1
    EMPTY_BURST = 2
    OUT_OF_RANGE = 3
    WRONG_LAST = 4
    STROBE_OUT_OF_RANGE = 5
    VALID_WITHDRAWN = 6
    PAYLOAD_CHANGED = 7
    UNREQUESTED_RESPONSE = 8


class Port(IntEnum):
    """The core's streams; ``Port`` of ``streams.h``."""

    INSTRUCTIONS = 0
    HOST_READ_REQUEST = 1
    HOST_READ_DATA = 2
    HOST_WRITE_REQUEST = 3
    HOST_WRITE_DATA = 4
    HOST_WRITE_DONE = 5
    WEIGHTS_REQUEST = 6
    WEIGHTS_DATA = 7
    EVENTS = 8
    MANAGEMENT = 9
    MANAGEMENT_RESPONSE = 10


class StallPattern(ctypes.Structure):
    """How streams stall; ``StallPattern`` of ``streams.h``."""

    _fields_ = [("threshold", c_uint32), ("cycles", c_uint32), ("ports", c_uint32)]


class BeatTime(ctypes.Structure):
    """Cycles that a memory needs for a beat; ``BeatTime`` of ``streams.h``."""

    _fields_ = [("numerator", c_uint64), ("denominator", c_uint64)]

    @classmethod
    def of(cls, time: Fraction) -> BeatTime:
        """The structure for a number of cycles."""
        return cls(time.numerator, time.denominator)


class Window(ctypes.Structure):
    """Cycles that a waveform has; ``Window`` of ``harness.h``."""

    _fields_ = [("first", c_uint64), ("last", c_uint64), ("is_given", c_uint32)]


class Memory(ctypes.Structure):
    """The memory at a port; ``Memory`` of ``channels.h``."""

    _fields_ = [("bytes", c_void_p), ("length", c_uint64), ("base", c_uint64)]


class Status(ctypes.Structure):
    """State of the simulation; ``Status`` of ``harness.h``."""

    _fields_ = [
        ("cycle", c_uint64),
        ("busy_cycles", c_uint64),
        ("finished_cycles", c_uint64),
        ("instructions_taken", c_uint64),
        ("host_read_beats", c_uint64),
        ("host_write_unanswered", c_uint64),
        ("host_write_missing_beats", c_uint64),
        ("host_write_unrequested_beats", c_uint64),
        ("weights_beats", c_uint64),
        ("error_address", c_uint64),
        ("error_beats", c_uint64),
        ("error", c_uint32),
        ("error_port", c_uint32),
        ("valid", c_uint32),
        ("ready", c_uint32),
        ("quiet", c_uint32),
    ]

    def waiting(self) -> list[Port]:
        """The streams on which a transfer is offered and not taken."""
        return [port for port in Port if self.valid >> port & 1 and not self.ready >> port & 1]


class _Event(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("fault", c_uint32), ("tag", c_uint32), ("index", c_uint32)]


_FUNCTIONS = {
    "create": (
        *(c_void_p, c_uint64, POINTER(StallPattern), c_uint32, POINTER(BeatTime), POINTER(BeatTime)),
        *(c_char_p, c_uint32, POINTER(Window)),
    ),
    "destroy": (None, c_void_p),
    "reset": (None, c_void_p),
    "attach": (None, c_void_p, POINTER(Memory), POINTER(Memory)),
    "feed": (None, c_void_p, c_void_p, c_uint64, c_uint64),
    "run": (c_uint32, c_void_p, c_uint64, c_uint64),
    "write_register": (None, c_void_p, c_uint32, c_uint64),
    "flush": (c_uint32, c_void_p, c_uint64),
    "read_registers": (c_uint32, c_void_p, POINTER(c_uint32), POINTER(c_uint64), c_uint64, c_uint64),
    "events": (c_uint64, c_void_p, POINTER(POINTER(_Event))),
    "record": (None, c_void_p, c_bool),
    "recorded": (c_uint64, c_void_p, POINTER(c_void_p)),
    "status": (None, c_void_p, POINTER(Status)),
    "memory": (c_bool, c_void_p, c_uint32, POINTER(c_void_p), POINTER(c_uint64), POINTER(c_uint64)),
}


class Model:
    """One instance of a compiled core with the harness around it.

    Keeps references to attached arrays for as long as the harness may access them. ``beats`` are the cycles of a beat
    of the host memory and of the weight memory; ``window`` are the first and the last cycle of programs that the
    waveform has, ``None`` for every cycle.
    """

    def __init__(
        self,
        path: Path,
        seed: int,
        stalls: StallPattern,
        latency: int,
        beats: tuple[Fraction, Fraction],
        trace_file: Path | None,
        fault: int,
        window: tuple[int, int] | None = None,
    ) -> None:
        library = ctypes.CDLL(str(path))
        self._functions = {}
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, f"mxu_{name}")
            function.restype = result
            function.argtypes = arguments
            self._functions[name] = function
        trace = None if trace_file is None else str(trace_file).encode()
        host, weights = (byref(BeatTime.of(time)) for time in beats)
        self._handle = self._functions["create"](
            *(seed, byref(stalls), latency, host, weights, trace, fault),
            byref(Window(*(window or (0, 0)), window is not None)),
        )
        self._memories: tuple[NDArray[np.uint8], ...] = ()
        self._words: NDArray[np.uint8] | None = None

    def _call(self, name: str, *arguments: object) -> int:
        return self._functions[name](self._handle, *arguments)

    def destroy(self) -> None:
        """Free the instance, and finish its waveform file."""
        self._call("destroy")

    def reset(self) -> None:
        """Hold the core in reset for some cycles, and drop all pending transfers."""
        self._call("reset")

    def attach(self, host: NDArray[np.uint8], weights: NDArray[np.uint8], bases: tuple[int, int] = (0, 0)) -> None:
        """Use these arrays as the memories; ``bases`` are the addresses of their first bytes."""
        self._memories = (host, weights)
        memories = (
            Memory(array.ctypes.data, array.size, base) for array, base in zip(self._memories, bases, strict=True)
        )
        self._call("attach", *map(byref, memories))

    def feed(self, words: NDArray[np.uint8], halts: int) -> None:
        """Offer instructions, an array of shape (count, 16); ``run`` ends after ``halts`` Halt events."""
        self._words = words
        self._call("feed", words.ctypes.data, len(words), halts)

    def run(self, cycles: int, patience: int) -> Result:
        """Run for at most ``cycles``, or until no transfer took place for ``patience`` cycles."""
        return Result(self._call("run", cycles, patience))

    def write_register(self, address: int, value: int) -> None:
        """Queue a write of a management register."""
        self._call("write_register", address, value)

    def flush(self, cycles: int) -> Result:
        """Run until the queued writes have been taken."""
        return Result(self._call("flush", cycles))

    def read_register(self, address: int, cycles: int) -> tuple[Result, int]:
        """Read a management register; the result is ``ENDED`` unless an error occurred."""
        result, (value,) = self.read_registers([address], cycles)
        return result, value

    def read_registers(self, addresses: Sequence[int], cycles: int) -> tuple[Result, list[int]]:
        """Read management registers one right after the other."""
        count = len(addresses)
        values = (c_uint64 * count)()
        result = self._call("read_registers", (c_uint32 * count)(*addresses), values, count, cycles)
        return Result(result), list(values)

    def events(self) -> list[_Event]:
        """Events since the last ``feed``."""
        pointer = POINTER(_Event)()
        count = self._call("events", byref(pointer))
        return [_Event(event.kind, event.fault, event.tag, event.index) for event in pointer[:count]]

    def record(self, on: bool) -> None:
        """Begin an empty record of the design's probes, or end it."""
        self._call("record", on)

    def recorded(self) -> NDArray[np.uint64]:
        """A copy of the record, shape (changes, 2): the cycle of each change and the bits from there on."""
        base = c_void_p()
        count = self._call("recorded", byref(base))
        return np.frombuffer(ctypes.string_at(base, 16 * count), np.uint64).reshape(count, 2)

    def status(self) -> Status:
        """The current state of the simulation."""
        status = Status()
        self._call("status", byref(status))
        return status

    def memory(self, index: int) -> NDArray[np.uint8]:
        """A copy of array ``index`` of the design, as uint8 of shape (elements, bytes per element)."""
        base, depth, width = c_void_p(), c_uint64(), c_uint64()
        if not self._call("memory", index, byref(base), byref(depth), byref(width)):
            raise IndexError(f"the model has no memory {index}")
        raw = ctypes.string_at(base, depth.value * width.value)
        return np.frombuffer(raw, np.uint8).reshape(depth.value, width.value)
