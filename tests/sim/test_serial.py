"""The simulated board at a pseudo-terminal, with an unreliable cable: correct results, or a clear error."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.arch.config import Config
from openmxu.arch.events import Counter, EventKind
from openmxu.arch.isa import format_named
from openmxu.arch.registers import BusPort, ShellKind, device_register
from openmxu.driver import DeviceBusError, MappedDevice, MemoryKind
from openmxu.driver.serial_link import PortError
from openmxu.driver.serial_transport import SerialTransport, open_port
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.noisy_wire import NoisyWire
from openmxu.sim.serial import SimulatedBoard
from tb.lockstep import cases, outcome

CONFIG = Config(
    size=4,
    activation_lanes=2,
    unified_buffer_rows=512,
    unified_buffer_banks=1,
    accumulator_rows=128,
    parameter_sets=16,
    host_data_bytes=16,
    weight_data_bytes=4,
    host_address_width=24,
)
CASES = 8
IMAGES = 24

_HALT = format_named("Halt")()


@pytest.fixture(scope="module")
def board() -> Iterator[SimulatedBoard]:
    """One board for all tests, each of which restarts it from whatever state the last one left."""
    with SimulatedBoard(CONFIG) as board:
        yield board


def connect(port: str, **options: object) -> SerialTransport:
    return SerialTransport(open_port(port), port, **({"timeout": 0.05, "attempts": 200} | options))


def test_identification(board: SimulatedBoard) -> None:
    with openmxu.open_device("serial", CONFIG, port=board.port) as device:
        assert device.config == CONFIG
    transport = connect(board.port)
    shell = device_register("SHELL")
    assert shell.extract("KIND", transport.read_register(shell.offset)) == ShellKind.SERIAL
    transport.close()


def test_digits_over_a_bad_cable(board: SimulatedBoard) -> None:
    images = digits_test_split()[0][:IMAGES]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=IMAGES)
    with NoisyWire(board.port, probability=0.03, seed=1) as wire:
        with MappedDevice(transport := connect(wire.port)) as device:
            (logits,) = program.run(device, images).values()
            assert device.counters[Counter.CYCLES] > 0
            statistics = transport.statistics
        damaged = wire.damages.total()
    assert np.array_equal(logits, expected)
    assert damaged > 5
    # Which frames are damaged depends on their number, and that depends on time-outs.
    assert statistics.bad + statistics.sent_again + statistics.received_again > 0


def test_a_program_that_stays(board: SimulatedBoard) -> None:
    """The same results in every run, and fewer messages than in the first one."""
    images = digits_test_split()[0][:2]
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=2)
    expected = program.run(Interpreter(CONFIG), images)["logits"]
    sent = [0]
    with MappedDevice(transport := connect(board.port, timeout=5.0)) as device:
        device.load(program)
        sent.append(transport.statistics.bytes_sent)
        for _ in range(3):
            assert np.array_equal(device.run(images)["logits"], expected)
            sent.append(transport.statistics.bytes_sent)
        assert transport.statistics.bytes_received > 0
    first, second, third = np.diff(sent)[1:]
    assert max(second, third) < first


def test_random_programs() -> None:
    """Results equal those of the interpreter, with one in fifty frames damaged; all memories start with 0."""
    reference = Interpreter(CONFIG)
    with SimulatedBoard(CONFIG) as board, NoisyWire(board.port, probability=0.02, seed=2) as wire:
        with MappedDevice(connect(wire.port), ring_bytes=256) as device:
            for case in cases(5, CASES, [CONFIG]):
                device.reset()
                reference.reset()
                hosts = case.host_memory.copy(), case.host_memory.copy()
                for program in case.executions():
                    got = outcome(device, program, hosts[0], case.weight_memory)
                    assert got == outcome(reference, program, hosts[1], case.weight_memory), case.seed
                    assert np.array_equal(*hosts), case.seed


def transfers(name: str, count: int) -> list:
    """A program that accesses host memory for some time."""
    rows = CONFIG.unified_buffer_rows
    return [format_named(name)(unified_buffer=0, rows=rows, host=0)] * count + [_HALT]


class Limited(SerialTransport):
    """A transport whose memories can be made smaller."""

    limit = 1 << 30

    def _is_inside(self, memory: MemoryKind, address: int, length: int) -> bool:
        return super()._is_inside(memory, address, length) and address + length <= self.limit


@pytest.mark.parametrize(
    ("name", "port"), [("Read_Host_Memory", BusPort.HOST_READ), ("Write_Host_Memory", BusPort.HOST_WRITE)]
)
def test_a_memory_that_ends(board: SimulatedBoard, name: str, port: BusPort) -> None:
    """The error names the access, and the next program runs correctly."""
    transport = Limited(open_port(board.port), board.port)
    memory, nothing = np.zeros(CONFIG.unified_buffer_rows * CONFIG.size, np.uint8), np.zeros(0, np.uint8)
    with MappedDevice(transport, ring_bytes=4096) as device:
        transport.limit = 8192 + 600
        with pytest.raises(DeviceBusError, match=rf"{port.name.lower()}: .* at 0x2200 with DECERR$") as caught:
            device.execute(transfers(name, 1), memory, nothing)
        assert caught.value.port is port
        transport.limit = 1 << 30
        events = device.execute(transfers(name, 1), memory, nothing)
        assert [event.kind for event in events] == [EventKind.HALT]


def test_a_driver_that_dies(board: SimulatedBoard) -> None:
    """The next driver can start, in whatever state the last one left the device."""
    memory, nothing = np.arange(2048, dtype=np.uint16).view(np.uint8)[:2048].copy(), np.zeros(0, np.uint8)
    for accesses in (0, 3, 10, 30):

        class Dying(SerialTransport):
            left = accesses

            def _answer(self, message) -> None:
                if not self.left:
                    raise InterruptedError
                self.left -= 1
                super()._answer(message)

        transport = Dying(open_port(board.port), board.port)
        device = MappedDevice(transport)
        with pytest.raises(InterruptedError):
            device.execute(transfers("Read_Host_Memory", 4), memory, nothing)
        transport.close()
        with openmxu.open_device("serial", CONFIG, port=board.port) as device:
            result = np.zeros(2048, np.uint8)
            device.execute(transfers("Read_Host_Memory", 1), memory, nothing)
            device.execute(transfers("Write_Host_Memory", 1), result, nothing)
        assert np.array_equal(result, memory)


def test_the_cable_is_pulled(board: SimulatedBoard) -> None:
    """In the middle of a program this causes an error at once."""
    memory, nothing = np.zeros(2048, np.uint8), np.zeros(0, np.uint8)
    wire = NoisyWire(board.port, probability=0.0, seed=0)
    device = MappedDevice(connect(wire.port))
    threading.Timer(0.5, wire.close).start()
    with pytest.raises(PortError, match=f"^{wire.port}: the port fails: "):
        device.execute(transfers("Read_Host_Memory", 100_000), memory, nothing)
    with pytest.raises(PortError):
        device.close()


def test_the_board_is_switched_off() -> None:
    with SimulatedBoard(CONFIG) as board:
        transport = connect(board.port)
        transport.read_register(0)
    with pytest.raises(PortError):
        transport.read_register(0)
    transport.close()
    board.close()


def test_probability_is_checked() -> None:
    with pytest.raises(ValueError, match=r"^probability must be from 0 to 1, not 1\.5$"):
        NoisyWire("/dev/null", probability=1.5, seed=0)
