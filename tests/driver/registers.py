"""Transports without hardware: registers that only keep what is written, and the interpreter behind such registers."""

from __future__ import annotations

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.isa import WORD_BYTES, Instruction
from openmxu.arch.registers import (
    CONFIGURATION,
    MAP_VERSION,
    Interrupt,
    ShellCommand,
    configuration_value,
    device_register,
)
from openmxu.device import DeviceFault
from openmxu.driver import MemoryKind, Region, Transport
from openmxu.sim.interpreter import Interpreter

CONFIG = Config(size=4, activation_lanes=2)
_SETTINGS = [
    *(f"{kind.name}_{what}" for kind in MemoryKind for what in ("OFFSET", "BASE", "LIMIT")),
    *("RING_BASE", "RING_SIZE"),
]


class Registers(Transport):
    """Registers that keep what is written, and memories; no device."""

    def __init__(self, host_bytes: int = 1 << 16, weight_bytes: int = 4096) -> None:
        self.words: dict[int, int] = {}
        self.regions = {MemoryKind.HOST: Region(0x10000, host_bytes), MemoryKind.WEIGHT: Region(0x3000, weight_bytes)}
        self.memories = {kind: bytearray(region.size) for kind, region in self.regions.items()}
        self.is_closed = False
        self.interrupts: list[dict[str, int]] = []
        self.set("IDENTIFICATION", IDENTIFICATION)
        self.set("SHELL", 1 | MAP_VERSION << 8)
        for name in CONFIGURATION:
            self.set(f"CONFIG_{name.upper()}", configuration_value(CONFIG, name))

    def set(self, name: str, value: int) -> None:
        register = device_register(name)
        for word in range(register.width // 32):
            self.words[register.offset + 4 * word] = value >> 32 * word & 0xFFFFFFFF

    def get(self, name: str) -> int:
        register = device_register(name)
        return sum(self.words.get(register.offset + 4 * word, 0) << 32 * word for word in range(register.width // 32))

    def read_register(self, offset: int) -> int:
        return self.words.get(offset, 0)

    def write_register(self, offset: int, value: int) -> None:
        self.words[offset] = value
        if offset == device_register("COMMAND").offset and value >> ShellCommand.POP_EVENT & 1:
            self.set("EVENT", 0)

    def region(self, memory: MemoryKind) -> Region:
        return self.regions[memory]

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        first = address - self.regions[memory].base
        assert 0 <= first <= first + size <= self.regions[memory].size
        return bytes(self.memories[memory][first : first + size])

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        first = address - self.regions[memory].base
        assert 0 <= first <= first + len(content) <= self.regions[memory].size
        self.memories[memory][first : first + len(content)] = content

    def wait(self) -> bool:
        if not self.interrupts:
            return False
        for name, value in self.interrupts.pop(0).items():
            self.set(name, value)
        return True

    def close(self) -> None:
        self.is_closed = True


class InterpretedRegisters(Registers):
    """Registers of a device that computes: the interpreter runs a program, of one event, that the ring holds.

    Attributes
    ----------
    moved
        Bytes that the driver has written to the memories, and read from them.
    writes, resets
        How often it has written a register, and reset the device.
    """

    def __init__(self, host_bytes: int = 1 << 20, weight_bytes: int = 1 << 16) -> None:
        super().__init__(host_bytes, weight_bytes)
        self.interpreter = Interpreter(CONFIG)
        self.moved = {"host written": 0, "weight written": 0, "host read": 0}
        self.writes = self.resets = 0

    def write_register(self, offset: int, value: int) -> None:
        super().write_register(offset, value)
        self.writes += 1
        if offset == device_register("COMMAND").offset and value >> ShellCommand.RESET & 1:
            self.resets += 1
            self.interpreter.reset()
            for name in _SETTINGS:
                self.set(name, 0)
        elif offset == device_register("CONTROL").offset and not value:
            self.set("RING_HEAD", 0)

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        self.moved[f"{memory.value} read"] += size
        return super().read_memory(memory, address, size)

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        self.moved[f"{memory.value} written"] += len(content)
        super().write_memory(memory, address, content)

    def wait(self) -> bool:
        if not (size := self.get("RING_HEAD")):
            return False
        words = bytes(self._bytes(MemoryKind.HOST, self.get("RING_BASE"), size))
        places = range(0, size, WORD_BYTES)
        program = [Instruction(int.from_bytes(words[place : place + WORD_BYTES], "little")) for place in places]
        memories = (
            self._bytes(kind, self.get(f"{kind.name}_OFFSET"), self.get(f"{kind.name}_LIMIT")) for kind in MemoryKind
        )
        try:
            events = self.interpreter.execute(program, *memories)
        except DeviceFault as fault:
            events = fault.events
        (event,) = events
        self.set("INTERRUPT_STATUS", 1 << Interrupt.HALT)
        fields = {field.name: field.offset for field in device_register("EVENT").fields}
        values = {"VALID": 1, "KIND": event.kind, "FAULT": event.fault}
        self.set("EVENT", sum(value << fields[name] for name, value in values.items()))
        self.set("EVENT_INDEX", event.index)
        return True

    def _bytes(self, memory: MemoryKind, address: int, size: int) -> np.ndarray:
        """A view of a memory's bytes."""
        first = address - self.regions[memory].base
        return np.frombuffer(self.memories[memory], np.uint8)[first : first + size]
