"""The driver from Linux user space, with ordinary files in place of the kernel's devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.arch.registers import StatusBit, device_register
from openmxu.driver import MappedDevice, MemoryKind, UioError, UioTransport
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.interpreter import Interpreter
from tests.driver.registers import CONFIG, InterpretedRegisters, Registers

BASE = 0x20000000
SIZE = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The files of a device, with the registers that never change."""
    attributes = tmp_path / "sys"
    (attributes / "udmabuf0").mkdir(parents=True)
    (attributes / "udmabuf0" / "phys_addr").write_text(f"{BASE:#018x}\n")
    (attributes / "udmabuf0" / "size").write_text(f"{SIZE}\n")
    registers = np.zeros(1024, "<u4")
    for offset, word in Registers().words.items():
        registers[offset // 4] = word
    (tmp_path / "uio0").write_bytes(registers.tobytes())
    (tmp_path / "udmabuf0").write_bytes(bytes(SIZE))
    return {"registers": tmp_path / "uio0", "memory": tmp_path / "udmabuf0", "attributes": attributes}


class Played(UioTransport):
    """A device that computes: writes to the file of registers reach other ones, behind which the interpreter runs."""

    def __init__(self, files: dict[str, Path]) -> None:
        super().__init__(**files, has_interrupt=False, patience=0.0)
        self._device = InterpretedRegisters()
        self._device.regions = {kind: self.region(kind) for kind in MemoryKind}
        host = self.region(MemoryKind.HOST).size
        self._device.memories = {  # type: ignore[assignment]  # the file's bytes, not copies
            MemoryKind.HOST: memoryview(self._bytes)[:host],
            MemoryKind.WEIGHT: memoryview(self._bytes)[host:],
        }

    def write_register(self, offset: int, value: int) -> None:
        super().write_register(offset, value)
        is_clearing = offset == device_register("INTERRUPT_STATUS").offset
        self._device.write_register(offset, 0 if is_clearing else int(self._words[offset // 4]))
        self._show()

    def wait(self) -> bool:
        if self._device.wait():
            self._device.set("STATUS", 1 << StatusBit.INTERRUPT)
            self._show()
        return super().wait()

    def _show(self) -> None:
        for offset, word in self._device.words.items():
            self._words[offset // 4] = word


def test_addresses(files):
    transport = UioTransport(**files, weight_bytes=5000)
    host, weights = transport.region(MemoryKind.HOST), transport.region(MemoryKind.WEIGHT)
    assert (host.base, host.size) == (BASE, SIZE - 8192)
    assert (weights.base, weights.size) == (BASE + SIZE - 8192, 8192)
    transport.write_memory(MemoryKind.WEIGHT, weights.base + 3, b"abc")
    assert transport.read_memory(MemoryKind.WEIGHT, weights.base + 2, 5) == b"\0abc\0"
    transport.write_register(device_register("RING_SIZE").offset, 0x12345670)
    transport.close()
    transport.close()
    assert files["memory"].read_bytes()[SIZE - 8192 + 3 :][:3] == b"abc"
    assert files["registers"].read_bytes()[device_register("RING_SIZE").offset :][:4] == b"\x70\x56\x34\x12"


def test_a_program_runs(files):
    with MappedDevice(Played(files), ring_bytes=4096) as device:
        assert device.config == CONFIG
        images, _ = digits_test_split()
        program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=4, effort=0)
        expected = program.run(Interpreter(CONFIG), images[:8])["logits"]
        assert np.array_equal(program.run(device, images[:8])["logits"], expected)


def test_waiting_for_the_interrupt(files):
    """A file can be read at once, as a device can whose interrupt has come."""
    status = device_register("STATUS").offset
    transport = UioTransport(**files)
    assert not transport.wait()
    transport.write_register(status, 1 << StatusBit.INTERRUPT)
    assert transport.wait()
    transport.close()
    assert files["registers"].read_bytes()[:4] == (1).to_bytes(4, "little")  # lets an interrupt through


def test_wrong_files(files, tmp_path):
    for name, message in (("registers", "cannot open .*nowhere: No such file"), ("memory", "cannot read .*phys_addr")):
        with pytest.raises(UioError, match=message):
            UioTransport(**{**files, name: tmp_path / "nowhere"})
    with pytest.raises(ValueError, match="leaves no host memory in a buffer of 1048576 bytes"):
        UioTransport(**files, weight_bytes=SIZE)
    files["memory"].write_bytes(bytes(4096))
    with pytest.raises(UioError, match=r"cannot map 1048576 bytes of .*udmabuf0"):
        UioTransport(**files)
    (files["attributes"] / "udmabuf0" / "phys_addr").write_text("0x800\n")
    with pytest.raises(UioError, match="is 0x800, no multiple of 4096"):
        UioTransport(**files)
    (files["attributes"] / "udmabuf0" / "size").write_text("many\n")
    with pytest.raises(UioError, match="size: it holds no number"):
        UioTransport(**files)


def test_open_device(files):
    with pytest.raises(openmxu.driver.IdentificationError, match=r"is .*size=4.*, not .*size=8"):
        openmxu.open_device("uio", openmxu.Config(), **files)
    with openmxu.open_device("uio", CONFIG, **files) as device:
        assert isinstance(device, MappedDevice)
