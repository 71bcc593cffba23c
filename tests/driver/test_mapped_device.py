"""The driver alone, with a transport that only stores registers; tests in tests/tb run it on the RTL."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.events import Command, CoreStatus
from openmxu.arch.isa import format_named
from openmxu.arch.registers import BusPort, StatusBit
from openmxu.device import DeviceHang
from openmxu.driver import DeviceBusError, IdentificationError, MappedDevice, MemoryKind
from tests.driver.registers import CONFIG, Registers

HALT = format_named("Halt")()


def test_reads_the_configuration() -> None:
    with MappedDevice(registers := Registers()) as device:
        assert device.config == CONFIG
        assert registers.get("INTERRUPT_ENABLE") == 0b11111111
    assert registers.get("INTERRUPT_ENABLE") == 0
    assert registers.is_closed


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("IDENTIFICATION", 0xDEAD, r"^the device says 0x000000000000dead, not 0x000155584d4e504f$"),
        ("SHELL", 1 | 9 << 8, "^the device has registers of version 9, not 1$"),
    ],
)
def test_unknown_devices(name: str, value: int, message: str) -> None:
    registers = Registers()
    registers.set(name, value)
    with pytest.raises(IdentificationError, match=message):
        MappedDevice(registers)


@pytest.mark.parametrize("size", [0, 16, 40])
def test_ring_sizes(size: int) -> None:
    with pytest.raises(ValueError, match=rf"^ring_bytes must be a multiple of 16 and at least 32, not {size}$"):
        MappedDevice(Registers(), ring_bytes=size)


def test_memory_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^the ring has 65536 bytes, more than the 8192 there are$"):
        MappedDevice(Registers(8192))
    device = MappedDevice(Registers(8192), ring_bytes=32)
    with pytest.raises(ValueError, match=r"^host_memory has 5000 bytes, more than the 4096 there are$"):
        device.execute([HALT], np.zeros(5000, np.uint8), np.zeros(0, np.uint8))
    with pytest.raises(ValueError, match=r"^weight_memory has 4097 bytes, more than the 4096 there are$"):
        device.execute([HALT], np.zeros(0, np.uint8), np.zeros(4097, np.uint8))


def test_registers_get_the_addresses_of_ring_and_memories() -> None:
    registers = Registers()
    device = MappedDevice(registers, ring_bytes=4096)
    host, weights = np.arange(100, dtype=np.uint8), np.arange(50, dtype=np.uint8)
    with pytest.raises(DeviceHang):
        device.execute([HALT], host, weights)
    assert registers.get("RING_BASE") == 0x10000
    assert registers.get("RING_SIZE") == 4096
    assert registers.get("HOST_OFFSET") == 0x11000
    assert (registers.get("HOST_BASE"), registers.get("HOST_LIMIT")) == (0, 100)
    assert registers.get("WEIGHT_OFFSET") == 0x3000
    assert (registers.get("WEIGHT_BASE"), registers.get("WEIGHT_LIMIT")) == (0, 50)
    assert registers.get("RING_HEAD") == 16
    assert registers.read_memory(MemoryKind.HOST, 0x10000, 16) == HALT.word.to_bytes(16, "little")
    assert registers.read_memory(MemoryKind.HOST, 0x11000, 100) == host.tobytes()
    assert registers.read_memory(MemoryKind.WEIGHT, 0x3000, 50) == weights.tobytes()


def test_a_device_without_progress_hangs() -> None:
    registers = Registers()
    registers.set("CORE_STATUS", 0x301)
    with pytest.raises(DeviceHang, match=r"^no progress; STATUS is 0x0, CORE_STATUS 0x301$"):
        MappedDevice(registers).execute([HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))
    assert registers.get("COMMAND") == 1


def test_a_reset_that_does_not_end() -> None:
    registers = Registers()
    device = MappedDevice(registers)
    registers.set("STATUS", 1)
    with pytest.raises(DeviceHang, match=r"^the reset does not end"):
        device.reset()


def test_a_scrub_that_does_not_end() -> None:
    registers = Registers()
    device = MappedDevice(registers)
    registers.set("CORE_STATUS", 1 << CoreStatus.SCRUBBING)
    with pytest.raises(DeviceHang, match=r"^the memories do not become clear: a program runs, or a fault is pending$"):
        device.scrub()
    assert registers.get("CORE_COMMAND") == 1 << Command.SCRUB


def test_instructions_that_are_never_taken() -> None:
    registers = Registers()
    device = MappedDevice(registers)
    registers.interrupts = [{"STATUS": 1 << 3, "INTERRUPT_STATUS": 1, "EVENT": 1 << 31}]
    with pytest.raises(DeviceHang, match=r"^instructions that were fetched are not taken$"):
        device.execute([HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))


def test_a_failing_transport_is_closed() -> None:
    class Failing(Registers):
        fails = False

        def write_register(self, offset: int, value: int) -> None:
            if self.fails:
                raise InterruptedError
            super().write_register(offset, value)

    device = MappedDevice(registers := Failing())
    registers.fails = True
    with pytest.raises(InterruptedError):
        device.close()
    assert registers.is_closed


def test_bus_error_at_the_end_of_a_program() -> None:
    """The error occurs after the interrupts are read, but before the event of Halt is read."""
    registers = Registers()
    device = MappedDevice(registers)
    bus_error = {"STATUS": 1 << StatusBit.BUS_ERROR, "BUS_ERROR": 1 | BusPort.HOST_WRITE << 8 | 2 << 16}
    registers.interrupts = [{"INTERRUPT_STATUS": 1, "EVENT": 1 << 31, **bus_error}]
    with pytest.raises(DeviceBusError, match=r"^instruction 0 \(halt\): BUS_ERROR: host_write: .* with SLVERR$"):
        device.execute([HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))


@pytest.mark.parametrize("limit", [0, -1, 1 << 32])
def test_time_limits(limit: int) -> None:
    with pytest.raises(ValueError, match=f"^time_limit must be from 1 to 2\\*\\*32 - 1, not {limit}$"):
        MappedDevice(Registers(), time_limit=limit)


def test_bus_error() -> None:
    registers = Registers()
    device = MappedDevice(registers)
    error = {"INTERRUPT_STATUS": 1 << 5, "BUS_ERROR": 1 | 2 << 8 | 3 << 16, "BUS_ERROR_ADDRESS": 0x1_2345_6780}
    registers.interrupts = [error]
    with pytest.raises(
        DeviceBusError,
        match=r"^instruction 0 \(halt\): BUS_ERROR: weights: the memory answered a burst at 0x123456780 with DECERR$",
    ):
        device.execute([HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))
