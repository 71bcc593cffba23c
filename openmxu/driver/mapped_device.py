"""A device behind memory-mapped registers, as every other device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION, Command, CoreStatus, Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import WORD_BYTES, Instruction, Opcode, encode_program
from openmxu.arch.registers import (
    CONFIGURATION,
    MAP_VERSION,
    MINIMUM_RING_BYTES,
    OFFSET_ALIGNMENT,
    BusPort,
    Interrupt,
    ShellCommand,
    device_register,
)
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang
from openmxu.disassembler import format_instruction
from openmxu.driver.transport import MemoryKind, Region, Transport
from openmxu.sim.interpreter import check_memory, check_program

__all__ = ["DeviceBusError", "IdentificationError", "MappedDevice"]

_INTERRUPTS = (
    Interrupt.HALT,
    Interrupt.FAULT,
    Interrupt.HOST_SYNCHRONIZE,
    Interrupt.INTERRUPT,
    Interrupt.DEBUG_TAG,
    Interrupt.BUS_ERROR,
    Interrupt.RING_EMPTY,
)
_PROGRESS = (
    *(Counter.ARRAY_ACTIVE, Counter.HOST_READ_BYTES, Counter.HOST_WRITE_BYTES, Counter.WEIGHT_BYTES),
    *(counter for counter in Counter if counter.name.startswith("RETIRED")),
)
"""Counters that stand still when nothing gets done; the others also count waiting."""

_SCRUB_READS = 100_000
"""How often a driver asks whether the memories are clear before it gives up."""

_STATUS_READS = 10_000
"""How often a driver asks whether something has ended before it gives up."""


class IdentificationError(DeviceError):
    """What answers is no device of this kind, or of a version that this driver does not know."""


class DeviceBusError(DeviceError):
    """A memory answered an access of the device with an error.

    Attributes
    ----------
    port : BusPort
        Who accessed it.
    address : int
        Of the burst, as the device sees memory.
    """

    def __init__(self, port: BusPort, address: int, response: int) -> None:
        self.port = port
        self.address = address
        reply = {2: "SLVERR", 3: "DECERR"}[response]
        super().__init__(f"{port.name.lower()}: the memory answered a burst at {address:#x} with {reply}")


class MappedDevice(Device):
    """Puts programs into the device's ring, copies memories to and fro, and serves its interrupts.

    Host memory and weight memory of a program are copied to the transport's regions; the ring comes first in the host
    memory's. Programs see their memories from address 0 on.

    Parameters
    ----------
    transport
        Way to the device; closed with the device.
    ring_bytes
        Size of the program ring, a multiple of 16 and at least 32; longer programs stream through it.

    Raises
    ------
    IdentificationError
        No device, or an unknown one.
    ValueError
        ``ring_bytes`` is not one of those sizes, or the ring does not fit into the region.
    """

    def __init__(self, transport: Transport, *, ring_bytes: int = 1 << 16) -> None:
        if ring_bytes < MINIMUM_RING_BYTES or ring_bytes % WORD_BYTES:
            raise ValueError(f"ring_bytes must be a multiple of 16 and at least 32, not {ring_bytes}")
        self._transport = transport
        self.config = self._identify()
        host = transport.region(MemoryKind.HOST)
        buffer = -(-ring_bytes // OFFSET_ALIGNMENT) * OFFSET_ALIGNMENT
        if buffer > host.size:
            raise ValueError(f"a ring of {ring_bytes} bytes does not fit into {host.size} bytes of host memory")
        self._ring = Region(host.base, ring_bytes)
        self._host = Region(host.base + buffer, host.size - buffer)
        self._weights = transport.region(MemoryKind.WEIGHT)
        self.reset()
        self._write("INTERRUPT_ENABLE", sum(1 << interrupt for interrupt in _INTERRUPTS))

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
            Its attribute ``events`` is the list of events up to and including the fault's own.
        DeviceBusError
            A memory answered with an error; memories hold anything, the device is ready for the next program.
        """
        instructions = check_program(program)
        self._load(host_memory, weight_memory)
        words = encode_program(instructions).reshape(-1)
        events = self._run(words, sum(word == Opcode.HALT for word in words[::WORD_BYTES]))
        result = self._transport.read_memory(MemoryKind.HOST, self._host.base, host_memory.size)
        host_memory[:] = np.frombuffer(result, np.uint8)
        if events[-1].kind is EventKind.FAULT:
            fault = _fault(instructions, events)
            fault.events = events
            raise fault
        return events

    @property
    def counters(self) -> Mapping[Counter, int]:
        """All counters since they were last cleared."""
        return {counter: self._read(f"COUNTER_{counter.name}") for counter in Counter}

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._write("CORE_COMMAND", 1 << Command.CLEAR_COUNTERS)

    def reset(self) -> None:
        """Forget configuration registers and queued weights, as after power-on; memories keep their contents."""
        self._write("COMMAND", 1 << ShellCommand.RESET)
        otherwise = "the reset does not end: memory does not answer an access of the device"
        self._await_clear("STATUS", "RESETTING", otherwise)
        self._write("INTERRUPT_STATUS", (1 << len(Interrupt)) - 1)

    def scrub(self) -> None:
        """Clear the core's memories, configuration registers, queued weights and counters."""
        self._write("CORE_COMMAND", 1 << Command.SCRUB)
        otherwise = "the memories do not become clear: a program runs, or a fault is pending"
        self._await_clear("CORE_STATUS", CoreStatus.SCRUBBING.name, otherwise, _SCRUB_READS)

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
        return Config(**{name: self._read(f"CONFIG_{name.upper()}") for name in CONFIGURATION})

    def _load(self, host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]) -> None:
        """Copy the memories, and tell the device where they are."""
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        for kind, memory, region in (
            (MemoryKind.HOST, host_memory, self._host),
            (MemoryKind.WEIGHT, weight_memory, self._weights),
        ):
            if memory.size > region.size:
                raise ValueError(f"{kind.value}_memory has {memory.size} bytes, more than the {region.size} there are")
            self._transport.write_memory(kind, region.base, memory.data)
            name = kind.name
            self._write(f"{name}_OFFSET", region.base)
            self._write(f"{name}_BASE", 0)
            self._write(f"{name}_LIMIT", memory.size)

    def _run(self, words: NDArray[np.uint8], halts: int) -> list[Event]:
        """Feed the ring and take events until the program has ended."""
        self._write("RING_BASE", self._ring.base)
        self._write("RING_SIZE", self._ring.size)
        self._write("CONTROL", 1)
        events: list[Event] = []
        progress = None
        given = head = 0
        while True:
            count = min(len(words) - given, self._room(head))
            self._put(head, words[given : given + count])
            given, head = given + count, (head + count) % self._ring.size
            if count:
                self._write("RING_HEAD", head)
            if self._transport.wait():
                happened = self._read("INTERRUPT_STATUS")
                self._write("INTERRUPT_STATUS", happened)
                if happened >> Interrupt.BUS_ERROR & 1:
                    raise self._bus_error()
                events += self._take_events()
                if sum(event.kind is EventKind.HALT for event in events) == halts:
                    break
                if any(event.kind is EventKind.FAULT for event in events):
                    break
            else:
                before, progress = progress, [self._read(f"COUNTER_{counter.name}") for counter in _PROGRESS]
                if progress == before:
                    raise self._hang()
        self._stop()
        if events[-1].kind is EventKind.FAULT:
            self._write("CORE_COMMAND", 1 << Command.CLEAR_FAULT)
        return events

    def _room(self, head: int) -> int:
        """Bytes that may be put into the ring; one instruction always stays free."""
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
        """Empty the ring; what was fetched goes to the core, which drops it after a fault."""
        self._write("CONTROL", 0)
        self._await_clear("STATUS", "FETCHING", "instructions that were fetched are not taken")

    def _await_clear(self, register: str, field: str, otherwise: str, reads: int = _STATUS_READS) -> None:
        """Wait until a bit is 0."""
        for _ in range(reads):
            if not self._flag(register, field):
                return
        raise DeviceHang(otherwise)

    def _bus_error(self) -> DeviceBusError:
        register, value = device_register("BUS_ERROR"), self._read("BUS_ERROR")
        port, response = BusPort(register.extract("PORT", value)), register.extract("RESPONSE", value)
        error = DeviceBusError(port, self._read("BUS_ERROR_ADDRESS"), response)
        self.reset()
        return error

    def _hang(self) -> DeviceHang:
        status, core = self._read("STATUS"), self._read("CORE_STATUS")
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


def _fault(instructions: tuple[Instruction, ...], events: list[Event]) -> DeviceFault:
    """The exception for the fault at the end of ``events``."""
    event = events[-1]
    halts = [index for index, instruction in enumerate(instructions) if instruction.word & 0xFF == Opcode.HALT]
    ended = sum(earlier.kind is EventKind.HALT for earlier in events)
    instruction = instructions[(halts[ended - 1] + 1 if ended else 0) + event.index]
    return DeviceFault(event.fault, event.index, instruction, format_instruction(instruction))
