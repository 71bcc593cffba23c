"""A device behind memory-mapped registers, with the interface of every other device."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION, Command, CoreStatus, Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import WORD_BYTES, Instruction, Opcode, Unit, encode_program, format_named
from openmxu.arch.registers import (
    CONFIGURATION,
    MAP_VERSION,
    MINIMUM_RING_BYTES,
    BusPort,
    Interrupt,
    ShellCommand,
    configuration_of,
    device_register,
)
from openmxu.arch.scrub import scrub_program
from openmxu.arch.watchdog_limit import WatchdogLimit
from openmxu.device import Device, DeviceFault, DeviceHang, in_one_thread
from openmxu.disassembler import format_instruction
from openmxu.driver.blame import accessing_instruction, fetched, oldest_unfinished
from openmxu.driver.errors import DeviceBusError, IdentificationError
from openmxu.driver.transport import MemoryKind, Region, Transport
from openmxu.program import Program
from openmxu.segments.device_segment import DeviceSegment
from openmxu.sim.interpreter import check_memory, check_program

__all__ = ["MappedDevice"]

_logger = logging.getLogger(__name__)

_INTERRUPTS = (
    Interrupt.HALT,
    Interrupt.FAULT,
    Interrupt.HOST_SYNCHRONIZE,
    Interrupt.INTERRUPT,
    Interrupt.DEBUG_TAG,
    Interrupt.BUS_ERROR,
    Interrupt.RING_EMPTY,
    Interrupt.TIME_OUT,
)
_PROGRESS = (
    *(Counter.ARRAY_ACTIVE, Counter.HOST_READ_BYTES, Counter.HOST_WRITE_BYTES, Counter.WEIGHT_BYTES),
    *(counter for counter in Counter if counter.name.startswith("RETIRED")),
)
"""Counters that stop when there is no progress; the others also count waiting."""

_SCRUB_READS = 100_000
"""Number of polls for cleared memories before the driver gives up."""

_STATUS_READS = 10_000
"""Number of polls for the end of an operation before the driver gives up."""

_FINISHED = {
    Unit.HOST_READ: Counter.RETIRED_HOST_READ,
    Unit.HOST_WRITE: Counter.RETIRED_HOST_WRITE,
    Unit.MATRIX: Counter.RETIRED_MATRIX,
    Unit.ACTIVATION: Counter.RETIRED_ACTIVATION,
}
"""Counters of finished instructions, by unit. Read_Weights retire when they are queued, so their bytes are counted
instead."""

_FETCHED = Counter.WEIGHT_BYTES

_MOST_CYCLES = (1 << 32) - 1
"""The largest TIME_LIMIT."""


@dataclass(frozen=True)
class _Placement:
    """Instructions, and where they and their memories lie.

    Attributes
    ----------
    instructions, words
        The instructions, and their encoding as bytes.
    ring, host, weights
        Their ring, and the memories that they see.
    is_in_ring
        Whether ``ring`` holds all instructions already, rather than taking them while they run.
    limit
        Cycles without progress after which the watchdog stops them.
    """

    instructions: tuple[Instruction, ...]
    words: NDArray[np.uint8]
    ring: Region
    host: Region
    weights: Region
    is_in_ring: bool
    limit: int


class MappedDevice(Device):
    """Puts programs and their memories into the transport's regions, and serves the device's interrupts.

    The host memory's region holds the ring of :meth:`execute`, then the loaded program: for each segment a ring with
    all of its instructions, so that they need not be written again, and its host memory. Memories of :meth:`execute`
    come behind, and leave it as it is. Weight memory is divided likewise. Programs see their memories from address 0
    on.

    Parameters
    ----------
    transport
        Connection to the device; closed with the device.
    ring_bytes
        Size of the ring of :meth:`execute`, a multiple of 16 and at least 32; longer programs stream through it.
    time_limit
        Cycles without progress after which the watchdog stops a program, from 1 to 2**32 - 1; by default more than the
        longest instruction of the program needs, and than the memories take to answer.

    Raises
    ------
    IdentificationError
        There is no device, or its version is unknown to this driver.
    ValueError
        ``ring_bytes`` is not a valid size, the ring does not fit into its region, or ``time_limit`` is out of range.
    """

    def __init__(self, transport: Transport, *, ring_bytes: int = 1 << 16, time_limit: int | None = None) -> None:
        if ring_bytes < MINIMUM_RING_BYTES or ring_bytes % WORD_BYTES:
            raise ValueError(f"ring_bytes must be a multiple of 16 and at least 32, not {ring_bytes}")
        if time_limit is not None and not 1 <= time_limit <= _MOST_CYCLES:
            raise ValueError(f"time_limit must be from 1 to 2**32 - 1, not {time_limit}")
        self._time_limit = time_limit
        self._transport = transport
        self._settings: dict[str, int] = {}
        self._loaded: dict[int, _Placement] = {}  # by the number of the segment's first instruction
        self.config = self._identify()
        self._ring, self._host = transport.region(MemoryKind.HOST).divide(ring_bytes, "the ring")
        self._weights = transport.region(MemoryKind.WEIGHT)
        self._free_host, self._free_weights = self._host, self._weights
        self._watchdog_limit = WatchdogLimit(self.config)
        self.reset()
        self._write("INTERRUPT_ENABLE", sum(1 << interrupt for interrupt in _INTERRUPTS))

    @in_one_thread
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program``; see :meth:`openmxu.device.Device.execute`.

        Raises
        ------
        DeviceFault
            Its attribute ``events`` is the list of events up to and including the fault's own. After ``TIME_OUT`` the
            contents of memories are undefined, and the device has been reset, or will be once its memories have
            answered.
        DeviceHang
            The device cannot be reset, because a memory still does not answer an access; or it is broken.
        DeviceBusError
            A memory answered with an error; the contents of memories are undefined, and the device has been reset.
        """
        instructions = check_program(program)
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        host, _ = self._free_host.divide(host_memory.size, "host_memory")
        weights, _ = self._free_weights.divide(weight_memory.size, "weight_memory")
        self._make_ready()
        self._transport.write_memory(MemoryKind.HOST, host.base, host_memory.data)
        self._transport.write_memory(MemoryKind.WEIGHT, weights.base, weight_memory.data)
        placement = self._placement(instructions, self._ring, host, weights, is_in_ring=False)
        events = self._run(placement)
        self._read_back(host.base, host_memory)
        _raise_fault(instructions, events)
        return events

    def _place(self, program: Program) -> None:
        rest, rings = self._host, []
        for segment in program.device_segments:
            # A ring is empty or has a free place.
            length = (segment.stop - segment.start + 1) * WORD_BYTES
            ring, rest = rest.divide(length, "the ring of the program's instructions")
            rings.append(ring)
        host, rest = rest.divide(self._image.size, "host_memory")
        weights, weight_rest = self._weights.divide(program.weights.size, "weight_memory")
        loaded = {}
        for segment, ring in zip(program.device_segments, rings, strict=True):
            instructions = check_program(program.instructions[segment.start : segment.stop])
            loaded[segment.start] = self._placement(instructions, ring, host, weights, is_in_ring=True)
        self._make_ready()
        for placement in loaded.values():
            self._transport.write_memory(MemoryKind.HOST, placement.ring.base, placement.words.data)
        self._transport.write_memory(MemoryKind.HOST, host.base, self._image.data)
        self._transport.write_memory(MemoryKind.WEIGHT, weights.base, program.weights.data)
        self._loaded, self._free_host, self._free_weights = loaded, rest, weight_rest

    def _run_loaded(self, program: Program, segment: DeviceSegment) -> None:
        loaded = self._loaded[segment.start]
        self._make_ready()
        for tensor in segment.inputs:
            place = tensor.place(segment.batch, self.config.size)
            self._transport.write_memory(MemoryKind.HOST, loaded.host.base + place.start, self._image[place].data)
        _raise_fault(loaded.instructions, self._run(loaded))
        for tensor in segment.outputs:
            place = tensor.place(segment.batch, self.config.size)
            self._read_back(loaded.host.base + place.start, self._image[place])

    @property
    def counters(self) -> Mapping[Counter, int]:
        """The counters of the profile since they were last cleared."""
        return self._count(Counter)

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._write("CORE_COMMAND", 1 << Command.CLEAR_COUNTERS)

    def reset(self) -> None:
        """Clear configuration registers and queued weights, as after power-on; memories keep their contents."""
        self._is_ready = False
        self._settings.clear()
        self._write("COMMAND", 1 << ShellCommand.RESET)
        otherwise = "the reset does not end: memory does not answer an access of the device"
        self._await_clear("STATUS", "RESETTING", otherwise)
        self._write("INTERRUPT_STATUS", (1 << len(Interrupt)) - 1)
        self._is_ready = True

    def scrub(self) -> None:
        """Clear the core's memories, configuration registers, queued weights and counters."""
        if not self.config.features.has_scrubber:
            self.execute(scrub_program(self.config), np.zeros(0, np.uint8), np.zeros(self.config.tile_bytes, np.uint8))
            self.clear_counters()
            return
        self._make_ready()  # a core in reset ignores the command
        self._write("CORE_COMMAND", 1 << Command.SCRUB)
        otherwise = "the memories do not become clear: a program runs, or a fault is pending"
        self._await_clear("CORE_STATUS", CoreStatus.SCRUBBING.name, otherwise, _SCRUB_READS)

    def measure_clock(self, seconds: float = 0.1) -> float:
        """The frequency of the device's clock in Hz, measured for about ``seconds`` with this computer's clock.

        The device counts cycles while a program waits for the host. Delays of the transport that differ between two
        reads are the error: 1 % or less over USB.

        Raises
        ------
        DeviceHang
            The program does not start.
        """
        self.reset()
        words = encode_program((format_named("Host_Synchronize")(), format_named("Halt")())).reshape(-1)
        for name, value in (("RING_BASE", self._ring.base), ("RING_SIZE", self._ring.size)):
            self._set(name, value)
        self._set("TIME_LIMIT", _MOST_CYCLES)
        self._put(0, words)
        self._is_ready = False
        self._write("CONTROL", 1)
        self._write("RING_HEAD", len(words))
        if not self._transport.wait():
            raise DeviceHang("a program that was put into the ring does not start")
        started, first = time.perf_counter(), self._read("COUNTER_CYCLES")
        time.sleep(seconds)
        ended, last = time.perf_counter(), self._read("COUNTER_CYCLES")
        self.reset()
        # Counters of the lite profile have 32 bits, which 10 s do not exhaust twice.
        return (last - first) % (1 << 32) / (ended - started)

    def close(self) -> None:
        """Switch interrupts off, and close the transport, even if it fails."""
        try:
            self._write("INTERRUPT_ENABLE", 0)
        finally:
            self._transport.close()

    def _identify(self) -> Config:
        identification = self._read("IDENTIFICATION")
        if identification != IDENTIFICATION:
            raise IdentificationError(f"the device says {identification:#018x}, not {IDENTIFICATION:#018x}")
        version = device_register("SHELL").extract("VERSION", self._read("SHELL"))
        if version != MAP_VERSION:
            raise IdentificationError(f"the device has registers of version {version}, not {MAP_VERSION}")
        try:
            return configuration_of({name: self._read(f"CONFIG_{name.upper()}") for name in CONFIGURATION})
        except ValueError as error:
            raise IdentificationError(f"the device has no configuration of this version of openmxu: {error}") from None

    def _placement(
        self, instructions: tuple[Instruction, ...], ring: Region, host: Region, weights: Region, *, is_in_ring: bool
    ) -> _Placement:
        limit = self._time_limit or max(self._watchdog_limit.cycles(instructions), self._transport.longest_answer)
        words = encode_program(instructions).reshape(-1)
        return _Placement(instructions, words, ring, host, weights, is_in_ring, min(limit, _MOST_CYCLES))

    def _make_ready(self) -> None:
        """Reset a device that may still access memory since it failed, or since a run was interrupted."""
        if not self._is_ready:
            self.reset()

    def _read_back(self, address: int, memory: NDArray[np.uint8]) -> None:
        memory[:] = np.frombuffer(self._transport.read_memory(MemoryKind.HOST, address, memory.size), np.uint8)

    def _set(self, name: str, value: int) -> None:
        """Write a register that only this driver changes, unless it has the value."""
        if self._settings.get(name) != value:
            self._settings.pop(name, None)
            self._write(name, value)
            self._settings[name] = value

    def _run(self, placement: _Placement) -> list[Event]:
        """Start the instructions, and take events until they have ended."""
        instructions, words, ring, limit = placement.instructions, placement.words, placement.ring, placement.limit
        halts = sum(word == Opcode.HALT for word in words[::WORD_BYTES])
        for kind, region in ((MemoryKind.HOST, placement.host), (MemoryKind.WEIGHT, placement.weights)):
            self._set(f"{kind.name}_OFFSET", region.base)
            self._set(f"{kind.name}_BASE", 0)
            self._set(f"{kind.name}_LIMIT", region.size)
        self._set("RING_BASE", ring.base)
        self._set("RING_SIZE", ring.size)
        self._set("TIME_LIMIT", limit)
        before = self._finished()
        self._is_ready = False  # until the instructions have ended
        self._write("CONTROL", 1)
        events: list[Event] = []
        progress, since, last = None, 0, None
        given = head = len(words) if placement.is_in_ring else 0
        if given:
            self._write("RING_HEAD", head)
        while True:
            if given < len(words) and (count := min(len(words) - given, self._room(head))):
                self._put(head, words[given : given + count])
                given, head = given + count, (head + count) % ring.size
                self._write("RING_HEAD", head)
            if self._transport.wait():
                happened = self._read("INTERRUPT_STATUS")
                self._write("INTERRUPT_STATUS", happened)
                events += self._take_events()
                has_ended = sum(event.kind is EventKind.HALT for event in events) == halts
                has_faulted = any(event.kind is EventKind.FAULT for event in events)
                # A bus error that was set after the interrupts were read still belongs to this program.
                has_ended_badly = (has_ended or has_faulted) and self._flag("STATUS", "BUS_ERROR")
                if happened >> Interrupt.BUS_ERROR & 1 or has_ended_badly:
                    raise self._bus_error(placement, events, given // WORD_BYTES)
                if happened >> Interrupt.TIME_OUT & 1:
                    raise self._time_out(instructions, events, before)
                if has_ended or has_faulted:
                    break
            else:
                now = self._count(_PROGRESS)
                cycles = self._read("COUNTER_CYCLES")
                if now != progress:
                    progress, since = now, cycles
                elif cycles == last or (now and cycles - since > 2 * limit):
                    raise self._hang()
                last = cycles
        self._stop()
        if events[-1].kind is EventKind.FAULT:
            self._write("CORE_COMMAND", 1 << Command.CLEAR_FAULT)
        self._is_ready = True
        return events

    def _room(self, head: int) -> int:
        """Bytes that may be put into the ring of :meth:`execute`; one instruction always stays free."""
        tail = self._read("RING_TAIL")
        return (tail - head - WORD_BYTES) % self._ring.size

    def _put(self, head: int, content: NDArray[np.uint8]) -> None:
        first = min(len(content), self._ring.size - head)
        for place, part in ((head, content[:first]), (0, content[first:])):
            if len(part):
                self._transport.write_memory(MemoryKind.HOST, self._ring.base + place, part.data)

    def _take_events(self) -> list[Event]:
        events = []
        register = device_register("EVENT")
        while register.extract("VALID", value := self._read("EVENT")):
            event = Event(
                EventKind(register.extract("KIND", value)),
                self._read("EVENT_INDEX"),
                self._read("EVENT_TAG"),
                FaultCode(register.extract("FAULT", value)),
            )
            self._write("COMMAND", 1 << ShellCommand.POP_EVENT)
            if event.kind is EventKind.HOST_SYNCHRONIZE:
                self._write("CORE_COMMAND", 1 << Command.ACKNOWLEDGE)
            events.append(event)
        return events

    def _stop(self) -> None:
        """Empty the ring; instructions already fetched go to the core, which drops them after a fault."""
        self._write("CONTROL", 0)
        self._await_clear("STATUS", "FETCHING", "instructions that were fetched are not taken")

    def _await_clear(self, register: str, field: str, otherwise: str, reads: int = _STATUS_READS) -> None:
        """Wait until a bit is 0."""
        for _ in range(reads):
            if not self._flag(register, field):
                return
        raise DeviceHang(otherwise)

    def _finished(self) -> dict[Counter, int]:
        """The counters of finished work, unit by unit."""
        return self._count((*_FINISHED.values(), _FETCHED))

    def _count(self, counters: Iterable[Counter]) -> dict[Counter, int]:
        """The values of those of ``counters`` that the device has."""
        has = self.config.features.counters
        return {counter: self._read(f"COUNTER_{counter.name}") for counter in counters if counter in has}

    def _bus_error(self, placement: _Placement, events: list[Event], given: int) -> DeviceBusError:
        """The exception for an error reply; ``given`` instructions have been put into the ring."""
        instructions = placement.instructions
        register, value = device_register("BUS_ERROR"), self._read("BUS_ERROR")
        port, response = BusPort(register.extract("PORT", value)), register.extract("RESPONSE", value)
        address = self._read("BUS_ERROR_ADDRESS")
        first, beat = _program_begin(instructions, events), self.config.host_data_bytes
        if port is BusPort.PROGRAM:
            size = placement.ring.size // WORD_BYTES
            place = (address - placement.ring.base) // WORD_BYTES
            position = place + (given - 1 - place) // size * size
        else:
            region = placement.host
            if port is BusPort.WEIGHTS:
                region, beat = placement.weights, self.config.weight_data_bytes
            accessed = accessing_instruction(self.config, instructions, port, first, address - region.base, beat)
            position = self._reached(instructions, events) if accessed is None else accessed
        instruction = instructions[position]
        error = DeviceBusError(position - first, instruction, port, address, response)
        error.events = events
        _logger.warning("fault: %s", error)
        self.reset()
        return error

    def _time_out(
        self, instructions: tuple[Instruction, ...], events: list[Event], before: Mapping[Counter, int]
    ) -> DeviceFault:
        """The exception for a program that the watchdog has stopped; ``before`` holds the counters of finished work
        when it began."""
        if self.config.features.is_sequential:
            position = self._reached(instructions, events)
        else:
            position = self._oldest_unfinished(instructions, events, before)
        instruction = instructions[position]
        index = position - _program_begin(instructions, events)
        fault = DeviceFault(FaultCode.TIME_OUT, index, instruction, format_instruction(instruction))
        fault.events = events
        # A memory that never answers keeps the device from leaving reset; the next program tries again.
        with suppress(DeviceHang):
            self.reset()
        return fault

    def _oldest_unfinished(
        self, instructions: tuple[Instruction, ...], events: list[Event], before: Mapping[Counter, int]
    ) -> int:
        """The position of the instruction that blocks the others, derived from the counters."""
        now = self._finished()
        finished = {unit: now[counter] - before[counter] for unit, counter in _FINISHED.items()}
        finished[Unit.WEIGHT] = fetched(instructions, (now[_FETCHED] - before[_FETCHED]) // self.config.tile_bytes)
        return oldest_unfinished(instructions, finished, self._reached(instructions, events))

    def _reached(self, instructions: tuple[Instruction, ...], events: list[Event]) -> int:
        """The position of the instruction that dispatch has reached."""
        position = _program_begin(instructions, events) + self._read("FAULT_INDEX")
        return min(position, len(instructions) - 1)

    def _hang(self) -> DeviceHang:
        status, core = self._read("STATUS"), self._read("CORE_STATUS")
        _logger.error("hang: no progress; STATUS is %#x, CORE_STATUS %#x", status, core)
        self.reset()
        return DeviceHang(f"no progress; STATUS is {status:#x}, CORE_STATUS {core:#x}")

    def _read(self, name: str) -> int:
        register = device_register(name)
        value = self._transport.read_register(register.offset)
        if register.is_wide:
            value |= self._transport.read_register(register.offset + 4) << 32
        return value

    def _write(self, name: str, value: int) -> None:
        register = device_register(name)
        self._transport.write_register(register.offset, value & 0xFFFFFFFF)
        if register.is_wide:
            self._transport.write_register(register.offset + 4, value >> 32)

    def _flag(self, name: str, field: str) -> bool:
        return bool(device_register(name).extract(field, self._read(name)))


def _program_begin(instructions: tuple[Instruction, ...], events: list[Event]) -> int:
    """The position of the first instruction of the program that runs after ``events``, or of the last program."""
    halts = [index for index, instruction in enumerate(instructions) if instruction.word & 0xFF == Opcode.HALT]
    ended = min(sum(event.kind is EventKind.HALT for event in events), len(halts) - 1)
    return halts[ended - 1] + 1 if ended else 0


def _raise_fault(instructions: tuple[Instruction, ...], events: list[Event]) -> None:
    """Raise the exception for the fault at the end of ``events``, if there is one."""
    event = events[-1]
    if event.kind is EventKind.FAULT:
        instruction = instructions[_program_begin(instructions, events) + event.index]
        fault = DeviceFault(event.fault, event.index, instruction, format_instruction(instruction))
        fault.events = events
        _logger.warning("fault: %s", fault)
        raise fault
