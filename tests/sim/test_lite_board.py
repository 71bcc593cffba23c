"""A simulated board with a core of the lite profile: the parts of the serial shell that are special there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.arch.config import Config
from openmxu.arch.events import Counter, EventKind
from openmxu.arch.isa import format_named
from openmxu.arch.registers import BusPort
from openmxu.driver import DeviceBusError, MappedDevice, MemoryKind
from openmxu.driver.serial_transport import SerialTransport, open_port
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.noisy_wire import NoisyWire
from openmxu.sim.serial import SimulatedBoard
from tb.lockstep import cases, outcome

CONFIG = Config.preset("tang_nano_9k")
"""A board whose simulation other tests use as well."""

CASES = 10
IMAGES = 24

_HALT = format_named("Halt")()


@pytest.fixture(scope="module")
def board() -> Iterator[SimulatedBoard]:
    """One board for all tests, each of which starts with a reset."""
    with SimulatedBoard(CONFIG) as board:
        yield board


def connect(port: str) -> SerialTransport:
    return SerialTransport(open_port(port), port, timeout=0.05, attempts=200)


def test_digits_over_a_bad_cable(board: SimulatedBoard) -> None:
    images = digits_test_split()[0][:IMAGES]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=IMAGES)
    with NoisyWire(board.port, probability=0.03, seed=1) as wire, MappedDevice(connect(wire.port)) as device:
        device.load(program)
        for _ in range(2):
            assert np.array_equal(device.run(images)["logits"], expected)
        assert list(device.counters) == [Counter.CYCLES]
        assert device.counters[Counter.CYCLES] > 0


def test_random_programs(board: SimulatedBoard) -> None:
    """Results equal those of the interpreter, with a ring shorter than most programs; all memories start with 0."""
    reference = Interpreter(CONFIG)
    with MappedDevice(connect(board.port), ring_bytes=256) as device:
        device.scrub()
        for case in cases(5, CASES, [CONFIG]):
            device.reset()
            reference.reset()
            hosts = case.host_memory.copy(), case.host_memory.copy()
            for program in case.executions():
                got = outcome(device, program, hosts[0], case.weight_memory)
                assert got == outcome(reference, program, hosts[1], case.weight_memory), case.seed
                assert np.array_equal(*hosts), case.seed


def test_scrubbing_leaves_zeros(board: SimulatedBoard) -> None:
    size = CONFIG.unified_buffer_rows * CONFIG.size
    content, nothing = np.random.default_rng(0).integers(1, 256, size, np.uint8), np.zeros(0, np.uint8)
    rows = CONFIG.unified_buffer_rows
    read, write = (format_named(name)(rows=rows) for name in ("Read_Host_Memory", "Write_Host_Memory"))
    found = np.ones(size, np.uint8)
    with MappedDevice(connect(board.port)) as device:
        device.execute([read, _HALT], content, nothing)
        device.execute([write, _HALT], found, nothing)
        assert np.array_equal(found, content)
        device.scrub()
        assert device.counters[Counter.CYCLES] == 0
        device.execute([write, _HALT], found, nothing)
    assert not found.any()


class Limited(SerialTransport):
    """A transport whose memories can be made smaller."""

    limit = 1 << 30

    def _is_inside(self, memory: MemoryKind, address: int, length: int) -> bool:
        return super()._is_inside(memory, address, length) and address + length <= self.limit


@pytest.mark.parametrize(
    ("name", "port"),
    [
        ("Read_Host_Memory", BusPort.HOST_READ),
        ("Write_Host_Memory", BusPort.HOST_WRITE),
        ("Read_Weights", BusPort.WEIGHTS),
    ],
)
def test_a_memory_that_ends(board: SimulatedBoard, name: str, port: BusPort) -> None:
    """The error names the port, and the next program runs correctly."""
    transport = Limited(open_port(board.port), board.port)
    memory = np.zeros(CONFIG.unified_buffer_rows * CONFIG.size, np.uint8)
    weights = np.zeros(16384, np.uint8)
    count = {"tiles": 2, "weights": 8192 + 640} if port is BusPort.WEIGHTS else {"rows": CONFIG.unified_buffer_rows}
    program = [format_named(name)(**count), format_named("Synchronize")(units=31), _HALT]
    with MappedDevice(transport, ring_bytes=4096) as device:
        transport.limit = 8192 + 600
        with pytest.raises(DeviceBusError, match=f"{port.name.lower()}: ") as caught:
            device.execute(program, memory, weights)
        assert caught.value.port is port
        transport.limit = 1 << 30
        events = device.execute(program, memory, weights)
        assert [event.kind for event in events] == [EventKind.HALT]
