"""The core in its AXI shell, compiled, with memories at its AXI ports, for drivers that access registers."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from pathlib import Path

import numpy as np

from openmxu.arch.config import Config
from openmxu.driver.transport import MemoryKind, Region, Transport
from openmxu.sim.memory_rate import Rate, beat_times
from openmxu.sim.verilator import AXI, BusError, Design, library_path
from openmxu.sim.verilator.library import BeatTime, Memory, Port, ProtocolError, StallPattern
from openmxu.sim.verilator.progress import ProgressHook

__all__ = ["Reply", "SimulatedAxi"]

BASE = 4096
"""Address of the first byte of both memories."""

_WHILE = 200_000
"""Cycles that :meth:`SimulatedAxi.wait` runs at most: more than any instruction needs."""

_ANSWER = 1_000
"""Cycles within which every access of a register is answered."""

_ERRORS = {
    ProtocolError.OUT_OF_RANGE: "a burst reaches outside the memory",
    ProtocolError.MISALIGNED: "the address of a burst is no multiple of a beat",
    ProtocolError.WRONG_LAST: "`last` does not mark the last beat of a burst",
    ProtocolError.STROBE_OUT_OF_RANGE: "a strobe selects a byte behind the end of the memory",
    ProtocolError.VALID_WITHDRAWN: "valid was withdrawn before the transfer",
    ProtocolError.PAYLOAD_CHANGED: "the payload changed before the transfer",
    100: "a burst crosses 4 KiB",
    101: "a burst is not INCR of whole beats",
}


class _Result(IntEnum):
    """Why the model stopped; ``Result`` of ``axi_harness.cpp``."""

    RUNNING = 0
    INTERRUPT = 1
    DONE = 2
    FAILED = 3
    REFUSED = 4


class _Status(ctypes.Structure):
    """State of the simulation; ``Status`` of ``axi_harness.cpp``."""

    _fields_ = [
        *((name, c_uint64) for name in ("cycle", "host_read_beats", "host_write_beats", "weight_beats")),
        *((name, c_uint64) for name in ("error_address", "error_beats")),
        *((name, c_uint32) for name in ("error", "error_port")),
    ]


class Reply(IntEnum):
    """Responses of a memory to a burst."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3
    NEVER = 4


class _Trouble(ctypes.Structure):
    """Bytes with a special response; ``Trouble`` of ``axi_channels.h``."""

    _fields_ = [("begin", c_uint64), ("end", c_uint64), ("response", c_uint32)]


_FUNCTIONS = {
    "create": (c_void_p, c_uint64, POINTER(StallPattern), c_uint32, POINTER(BeatTime), POINTER(BeatTime)),
    "destroy": (None, c_void_p),
    "reset": (None, c_void_p),
    "attach": (None, c_void_p, POINTER(Memory), POINTER(Memory)),
    "trouble": (None, c_void_p, POINTER(_Trouble), POINTER(_Trouble)),
    "run": (c_uint32, c_void_p, c_uint64),
    "write": (c_uint32, c_void_p, c_uint32, c_uint32, c_uint64),
    "read": (c_uint32, c_void_p, c_uint32, POINTER(c_uint32), c_uint64),
    "status": (None, c_void_p, POINTER(_Status)),
}


class SimulatedAxi(Transport):
    """Registers and memories of a simulated AXI shell; the clock runs while the driver waits or accesses registers.

    The first one of a configuration builds the model, which takes from seconds to minutes; later ones load it from the
    cache. Memories transfer at a rate in each direction, answer after a latency, and stall at random. The harness
    checks that the shell obeys AXI's rules for a manager.

    Parameters
    ----------
    config
        Sizes of the core.
    seed
        Seed of the random stalls.
    stall_probability
        Fraction of the time that each channel stalls, from 0 up to, but not including, 1.
    memory_latency
        Cycles, at least 1, from a burst's address to its first beat, and from its last written beat to the reply.
    host_rate, weight_rate
        Bytes per cycle of the memories: see :class:`~openmxu.sim.verilated.VerilatedDevice`.
    memory_bytes
        Size of each memory, as far as its addresses reach.
    build_progress
        See :class:`~openmxu.sim.verilated.VerilatedDevice`.
    design
        The design to compile in place of the shell: another component with its ports, or a netlist of it.

    Raises
    ------
    TypeError
        A rate is neither an ``int`` nor a ``Fraction``.
    ValueError
        A parameter is outside its range.
    MissingToolError
        A tool that the build needs is not installed; the error says how to get it.
    BuildError
        The build failed.
    """

    def __init__(
        self,
        config: Config,
        *,
        seed: int = 0,
        stall_probability: float = 0.0,
        memory_latency: int = 4,
        host_rate: Rate = None,
        weight_rate: Rate = None,
        memory_bytes: int = 1 << 28,
        build_progress: ProgressHook | None = None,
        design: Design = AXI,
    ) -> None:
        self._handle: int | None = None
        if not 0.0 <= stall_probability < 1.0:
            raise ValueError(f"stall_probability must be at least 0 and less than 1, not {stall_probability}")
        if memory_latency < 1:
            raise ValueError(f"memory_latency must be at least 1 cycle, not {memory_latency}")
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed must be from 0 to 2**64 - 1, not {seed}")
        if memory_bytes < BASE:
            raise ValueError(f"memory_bytes must be at least {BASE}, not {memory_bytes}")
        beats = beat_times(config, host_rate, weight_rate)
        widths = {MemoryKind.HOST: config.host_address_width, MemoryKind.WEIGHT: config.weight_address_width}
        self._regions = {kind: Region(BASE, min(memory_bytes, (1 << width) - BASE)) for kind, width in widths.items()}
        self._troubles = {kind: _Trouble(0, 0, Reply.OKAY) for kind in self._regions}
        self._memories = {kind: np.zeros(region.size, np.uint8) for kind, region in self._regions.items()}
        self._load(library_path(config, design=design, progress=build_progress))
        stalls = StallPattern(round(stall_probability * (1 << 32)), 1, sum(1 << port for port in Port))
        host, weights = (byref(BeatTime.of(time)) for time in beats)
        self._handle = self._functions["create"](seed, byref(stalls), memory_latency, host, weights)
        arrays = (Memory(array.ctypes.data, array.size, BASE) for array in self._memories.values())
        self._call("attach", *map(byref, arrays))

    longest_answer = 50_000

    def read_register(self, offset: int) -> int:
        """The word of 32 bits at a byte offset in the device's registers."""
        value = c_uint32()
        self._check(self._call("read", offset, byref(value), _ANSWER), offset)
        return value.value

    def write_register(self, offset: int, value: int) -> None:
        """Write that word."""
        self._check(self._call("write", offset, value, _ANSWER), offset)

    def region(self, memory: MemoryKind) -> Region:
        """All of a memory."""
        return self._regions[memory]

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        """Bytes of a memory."""
        return self._memories[memory][address - BASE :][:size].tobytes()

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        """Write bytes of a memory."""
        self._memories[memory][address - BASE :][: len(content)] = np.frombuffer(content, np.uint8)

    def answer(self, memory: MemoryKind, address: int, size: int, reply: Reply) -> None:
        """Let a memory answer bursts that touch these bytes with this reply, and all others as usual."""
        self._troubles[memory] = _Trouble(address - BASE, address - BASE + size, reply)
        self._call("trouble", *map(byref, self._troubles.values()))

    def wait(self) -> bool:
        """Run until the interrupt is set, or for a limited number of cycles."""
        return self.run(_WHILE)

    def run(self, cycles: int) -> bool:
        """Run until the interrupt is set, for at most this many cycles; returns whether it is set."""
        return self._check(self._call("run", cycles)) is _Result.INTERRUPT

    @property
    def cycle(self) -> int:
        """Cycles since the beginning."""
        return self._status().cycle

    def close(self) -> None:
        """Free the model."""
        if self._handle is not None:
            self._call("destroy")
            self._handle = None

    def __del__(self) -> None:
        self.close()

    def _load(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        self._functions = {}
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, f"mxu_{name}")
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function

    def _call(self, name: str, *arguments: object) -> int:
        return self._functions[name](self._handle, *arguments)

    def _status(self) -> _Status:
        status = _Status()
        self._call("status", byref(status))
        return status

    def _check(self, result: int, offset: int | None = None) -> _Result:
        """Return the result, or raise an exception for an error."""
        result = _Result(result)
        if result is _Result.FAILED:
            status = self._status()
            burst = f" ({status.error_beats} beats at address {status.error_address:#x})" if status.error_beats else ""
            where = f"{Port(status.error_port).name.lower()}: {_ERRORS[status.error]}{burst}"
            raise BusError(f"{where}, in cycle {status.cycle}")
        if offset is not None and result is not _Result.DONE:
            what = "refused" if result is _Result.REFUSED else f"not answered in {_ANSWER} cycles"
            raise BusError(f"an access of the register at {offset:#x} was {what}")
        return result
