"""The driver at a serial port, with a device in Python at the other end: normal operation and all errors."""

from __future__ import annotations

import os
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import openmxu
from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.registers import CONFIGURATION, MAP_VERSION, configuration_value, device_register
from openmxu.arch.serial import BAUD_RATES, LINK_VERSION, FrameKind, MessageKind, ReplyStatus
from openmxu.driver import IdentificationError, MappedDevice, MemoryKind
from openmxu.driver.serial_frames import Deframer, Frame, Message, decode_message, encode_frame, encode_message
from openmxu.driver.serial_link import NoAnswerError, PortError, RetryError, SerialLink
from openmxu.driver.serial_transport import SerialTransport, open_port
from openmxu.sim.pseudo_terminal import PseudoTerminal

CONFIG = Config(size=4, activation_lanes=2, host_address_width=20)
QUICK = {"timeout": 0.05, "attempts": 3}


class FakeDevice:
    """A device with registers; ``script`` can send messages whenever a register is read.

    Parameters
    ----------
    wire
        The wire; the device uses its near end.
    script
        Called when a register is read, before the answer, with the number of reads so far and a function that sends a
        message, either at once or, with ``later``, after the answer.
    version
        The protocol version that the device reports.
    answers
        Whether reads of registers are answered.
    twice
        Whether every frame is sent twice.

    Attributes
    ----------
    words
        Words of the registers, by offset.
    writes, replies
        Writes of registers and replies to the script's messages that were received.
    ignores_frames
        Whether received frames are ignored.
    requests_memory
        Whether it sends another memory request after each reply.
    """

    def __init__(
        self,
        wire: PseudoTerminal,
        *,
        script: Callable[[int, Callable[..., None]], None] = lambda count, send: None,
        version: int = LINK_VERSION,
        answers: bool = True,
        twice: bool = False,
    ) -> None:
        self._wire, self._script, self._version, self._answers = wire, script, version, answers
        self._twice = twice
        self.words: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []
        self.replies: list[Message] = []
        self._deframer = Deframer()
        self._queue: list[bytes] = []
        self._later: list[bytes] = []
        self._number = self._heard = self._accesses = 0
        self._busy = self.ignores_frames = self.requests_memory = self._is_stopped = False
        self.set("IDENTIFICATION", IDENTIFICATION)
        self.set("SHELL", 2 | MAP_VERSION << 8)
        for name in CONFIGURATION:
            self.set(f"CONFIG_{name.upper()}", configuration_value(CONFIG, name))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def set(self, name: str, value: int) -> None:
        register = device_register(name)
        for word in range(register.width // 32):
            self.words[register.offset + 4 * word] = value >> 32 * word & 0xFFFFFFFF

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                received = os.read(self._wire.near, 4096)
            except BlockingIOError:
                # All frames received so far have been answered.
                self._queue += self._later
                self._later.clear()
                self._next()
                threading.Event().wait(0.001)
                continue
            for frame in self._deframer.frames(received):
                if not self.ignores_frames:
                    self._take(frame)

    def _put(self, frame: Frame) -> None:
        for _ in range(1 + self._twice):
            os.write(self._wire.near, encode_frame(frame))

    def _send(self, message: bytes, *, later: bool = False) -> None:
        (self._later if later else self._queue).append(message)
        self._next()

    def _next(self) -> None:
        if self._queue and not self._busy:
            self._busy = True
            self._number = (self._number + 1) % 256
            self._put(Frame(FrameKind.MESSAGE, self._number, self._heard, self._queue.pop(0)))

    def _take(self, frame: Frame) -> None:
        if frame.kind is FrameKind.SYNCHRONIZE:
            self._put(Frame(FrameKind.SYNCHRONIZED, contents=frame.contents + bytes([self._version])))
            return
        if frame.dealt_with == self._number:
            self._busy = False
        if frame.kind is FrameKind.MESSAGE:
            if frame.number == (self._heard + 1) % 256:
                self._heard = frame.number
                self._obey(decode_message(frame.contents))
            self._put(Frame(FrameKind.ACKNOWLEDGE, 0, self._heard))
        self._next()

    def _obey(self, message: Message) -> None:
        if message.kind is MessageKind.READ_REGISTER:
            self._accesses += 1
            self._script(self._accesses, self._send)
            if self._answers:
                value = self.words.get(message.fields["offset"], 0)
                self._send(encode_message(MessageKind.REGISTER_VALUE, value=value))
        elif message.kind is MessageKind.WRITE_REGISTER:
            self.writes.append((message.fields["offset"], message.fields["value"]))
        else:
            self.replies.append(message)
            if self.requests_memory:
                self._send(encode_message(MessageKind.READ_HOST, address=4096, length=256))


@contextmanager
def fake_device(**options: object) -> Iterator[tuple[FakeDevice, str]]:
    """A device, and the name of its port."""
    wire = PseudoTerminal()
    device = FakeDevice(wire, **options)
    try:
        yield device, wire.name
    finally:
        device.stop()
        wire.close()


def connect(port: str, **options: object) -> SerialTransport:
    return SerialTransport(open_port(port), port, **(QUICK | options))


@pytest.mark.parametrize("twice", [False, True])
def test_registers(twice: bool) -> None:
    """Frames that are sent twice change nothing."""
    with fake_device(twice=twice) as (device, port):
        with MappedDevice(transport := connect(port)) as mapped:
            assert mapped.config == CONFIG
            assert transport.region(MemoryKind.HOST).size == (1 << 20) - 4096
        assert device.writes[0] == (device_register("COMMAND").offset, 1)
        assert device.writes[-1] == (device_register("INTERRUPT_ENABLE").offset, 0)
        assert len(device.writes) == 4


def test_serves_memory() -> None:
    """Requests of the device are served while a register is read; accesses outside of the memory are errors."""
    asked = [
        encode_message(MessageKind.WRITE_HOST, b"abc", address=4099),
        encode_message(MessageKind.READ_HOST, address=4098, length=5),
        encode_message(MessageKind.READ_PROGRAM, address=4096, length=16),
        encode_message(MessageKind.READ_WEIGHTS, address=8192, length=2),
        encode_message(MessageKind.READ_HOST, address=4095, length=2),
        encode_message(MessageKind.READ_HOST, address=(1 << 20) - 1, length=2),
        encode_message(MessageKind.READ_HOST, address=4096, length=257),
        encode_message(MessageKind.WRITE_HOST, b"ab", address=(1 << 20) - 1),
    ]

    def ask(count: int, send: Callable[..., None]) -> None:
        if count == 3:
            for message in asked:
                send(message)

    with fake_device(script=ask) as (device, port):
        transport = connect(port)
        transport.write_memory(MemoryKind.HOST, 4096, bytes(range(16)))
        transport.write_memory(MemoryKind.WEIGHT, 8192, b"\x55\x66")
        transport.read_register(0)
        assert transport.read_memory(MemoryKind.HOST, 4099, 3) == b"abc"
        transport.read_register(0)
        transport.close()
    replies = [(reply.kind, reply.fields["status"], reply.data) for reply in device.replies]
    ok, none = ReplyStatus.OKAY, ReplyStatus.NO_MEMORY
    memory = bytes(range(3)) + b"abc" + bytes(range(6, 16))
    assert replies == [
        (MessageKind.HOST_WRITTEN, ok, b""),
        (MessageKind.HOST_DATA, ok, memory[2:7]),
        (MessageKind.PROGRAM_DATA, ok, memory),
        (MessageKind.WEIGHT_DATA, ok, b"\x55\x66"),
        (MessageKind.HOST_DATA, none, b""),
        (MessageKind.HOST_DATA, none, b""),
        (MessageKind.HOST_DATA, none, b""),
        (MessageKind.HOST_WRITTEN, none, b""),
    ]


def test_a_device_that_requests_memory_all_the_time() -> None:
    """Registers can still be accessed."""

    def begin(count: int, send: Callable[..., None]) -> None:
        if count == 3:
            send(encode_message(MessageKind.READ_HOST, address=4096, length=256))

    with fake_device(script=begin) as (device, port):
        transport = connect(port, patience=1.0)
        device.requests_memory = True
        for value in range(20):
            transport.read_register(0)
            transport.write_register(8, value)
        assert [value for _, value in device.writes] == list(range(20))
        assert len(device.replies) > 20
        device.requests_memory = False
        transport.close()


def test_waits_for_the_interrupt() -> None:
    def interrupt(count: int, send: Callable[..., None]) -> None:
        if count in (3, 5):
            # After the answer, or before it; in the latter case the status already includes the interrupt.
            send(encode_message(MessageKind.INTERRUPT), later=count == 3)

    with fake_device(script=interrupt) as (device, port):
        transport = connect(port, patience=2.0)
        assert transport.wait()
        transport.read_register(0)
        assert not transport.wait()
        device.set("STATUS", 1 << 5)
        assert transport.wait()
        transport.close()


def test_no_device_answers() -> None:
    wire = PseudoTerminal()
    with pytest.raises(
        NoAnswerError, match=rf"^{wire.name}: no answer to 3 frames at 1000000 baud; is it the right port"
    ):
        connect(wire.name)
    wire.close()


def test_text_of_another_device_is_not_an_answer() -> None:
    """Text that a board prints is not an answer."""
    wire = PseudoTerminal()
    os.write(wire.near, b"Welcome to ~ another ~ board ~\r\n" * 20)
    with pytest.raises(NoAnswerError):
        connect(wire.name)
    wire.close()


def test_another_version() -> None:
    with fake_device(version=9) as (_, port):
        with pytest.raises(NoAnswerError, match=r"the device speaks version 09 of the link, not 1$"):
            connect(port)


def test_another_device() -> None:
    with fake_device() as (device, port):
        device.set("IDENTIFICATION", 0x1234)
        with pytest.raises(IdentificationError, match="the device says 0x0000000000001234, not"):
            openmxu.open_device("serial", CONFIG, port=port)


def test_an_unknown_configuration() -> None:
    with fake_device() as (device, port):
        device.set("CONFIG_PROFILE", 99)
        with pytest.raises(IdentificationError, match="no configuration of this version of openmxu: unknown profile"):
            openmxu.open_device("serial", port=port)


def test_the_configuration_is_that_of_the_device() -> None:
    with fake_device() as (_, port), openmxu.open_device(f"serial:{port}") as device:
        assert device.config == CONFIG
    with pytest.raises(openmxu.UnknownDeviceError, match="unknown device 'axi:/dev/ttyUSB0'; known: interpreter,"):
        openmxu.open_device("axi:/dev/ttyUSB0")


class FastDevice(FakeDevice):
    """A device that understands frames at 3 Mbaud only."""

    def _take(self, frame: Frame) -> None:
        if termios.tcgetattr(self._wire.near)[4] == termios.B3000000:
            super()._take(frame)


def test_the_rate_is_found() -> None:
    wire = PseudoTerminal()
    device = FastDevice(wire)
    transport = connect(wire.name, rates=BAUD_RATES, attempts=4)
    assert transport.baud == 3_000_000
    transport.read_register(0)
    transport.close()
    with pytest.raises(NoAnswerError, match="no answer to 3 frames at 1000000 baud"):
        connect(wire.name, rates=(1_000_000,))
    device.stop()
    wire.close()


def test_another_configuration() -> None:
    with fake_device() as (_, port):
        with pytest.raises(IdentificationError, match=rf"device at {port} is Config\(size=4, .*not Config\(size=8,"):
            openmxu.open_device("serial", Config.for_size(8), port=port)


def test_a_device_that_stops_answering() -> None:
    with fake_device() as (device, port):
        transport = connect(port)
        device.ignores_frames = True
        with pytest.raises(RetryError, match=rf"^{port}: the device does not answer any more: 3 frames went unheard$"):
            transport.read_register(0)
        # After a failure the link stays unusable, even if the device answers again.
        device.ignores_frames = False
        with pytest.raises(RetryError):
            transport.write_register(0, 0)
        transport.close()


def test_a_register_without_answer() -> None:
    with fake_device(answers=False) as (_, port):
        with pytest.raises(RetryError, match="the register at 0x12c is not answered"):
            connect(port, patience=0.2)


@pytest.mark.parametrize("kind", [None, MessageKind.HOST_DATA])
def test_a_device_with_another_protocol(kind: MessageKind | None) -> None:
    nonsense = b"\x77" if kind is None else encode_message(kind, status=0)

    def talk(count: int, send: Callable[..., None]) -> None:
        send(nonsense)

    with fake_device(script=talk) as (_, port):
        with pytest.raises(NoAnswerError, match="the device speaks another protocol"):
            connect(port)


def test_the_port_is_closed_in_between() -> None:
    wire = PseudoTerminal()
    device = FakeDevice(wire)
    transport = connect(wire.name)
    transport.read_register(0)
    device.stop()
    wire.close()
    with pytest.raises(PortError, match=f"^{wire.name}: the port fails: "):
        transport.read_register(0)
    transport.close()


def test_no_such_port() -> None:
    with pytest.raises(PortError, match=r"^cannot open /dev/no-such-port: "):
        open_port("/dev/no-such-port")


def test_a_port_in_use() -> None:
    wire = PseudoTerminal()
    first = open_port(wire.name)
    with pytest.raises(PortError, match=f"^cannot open {wire.name}: "):
        open_port(wire.name)
    first.close()
    wire.close()


def test_the_port_is_closed_when_opening_fails() -> None:
    wire = PseudoTerminal()
    port = open_port(wire.name)
    with pytest.raises(NoAnswerError):
        SerialLink(port, wire.name, **QUICK)
    with pytest.raises(NoAnswerError):
        SerialTransport(port, wire.name, **QUICK)
    assert not port.is_open
    wire.close()
