"""Link: every message is delivered once, in order, in both directions, with any damage to frames."""

import random
from collections import deque
from collections.abc import Callable

import cocotb

from openmxu.arch.serial import FLAG, LINK_VERSION, MESSAGE_BYTES, NONCE_BYTES, FrameKind
from openmxu.driver.serial_frames import Deframer, Frame, encode_frame
from openmxu.rtl.serial.link.transmitter import ACKNOWLEDGE_CYCLES
from openmxu.sim.noisy_wire import DAMAGES
from tb.bench import STALLS, Agent, Bench
from tb.models.messages import collect, payloads
from tb.rack import RETRANSMIT_CYCLES
from tb.units.serial.framer import anything

MESSAGES = 40


def request(nonce: int) -> Frame:
    """A frame that requests a restart of the link."""
    return Frame(FrameKind.SYNCHRONIZE, contents=nonce.to_bytes(NONCE_BYTES, "little"))


class Peer(Agent):
    """The other end of the wire, which may damage frames in both directions.

    Attributes
    ----------
    to_send
        Messages that have not been sent yet.
    received
        Messages received from the device.
    frames
        Number of frames received, by kind.
    is_silent
        Whether messages are not acknowledged automatically.
    """

    def __init__(self, bench: Bench, idle: float, backpressure: float, damaged: float) -> None:
        self._bench = bench
        self._wire = bench.source("rx", idle)
        bench.sink("tx", backpressure, on_transfer=self._take_byte)
        self._damaged = damaged
        self._random = random.Random(random.getrandbits(32))
        self._deframer = Deframer()
        self._piece = bytearray()
        self._number = 0
        self._under_way: bytes | None = None
        self._resend_at = 0
        self._dealt_with = 0
        self.to_send: deque[bytes] = deque()
        self.received: list[bytes] = []
        self._awaited: bytes | None = None
        self.frames = dict.fromkeys(FrameKind, 0)
        self.is_silent = False
        bench.add(self)

    def begin(self, nonce: int) -> None:
        """Request a restart: count from 0, and discard the messages of this side."""
        self._number = self._dealt_with = 0
        self._under_way = None
        self.to_send.clear()
        self.received.clear()
        self._awaited = request(nonce).contents + bytes([LINK_VERSION])
        self.send(request(nonce))

    @property
    def has_begun(self) -> bool:
        """Whether the restart has been answered."""
        return self._awaited is None

    def send(self, frame: Frame) -> None:
        """Put a frame on the wire."""
        self._wire.send(*self._damage(bytearray(encode_frame(frame))))

    @property
    def is_settled(self) -> bool:
        """Whether all messages have been delivered."""
        return self._under_way is None and not self.to_send

    def has_all_of(self, count: int) -> Callable[[], bool]:
        """A condition: all messages have been delivered, and ``count`` messages have been received."""
        return lambda: self.is_settled and len(self.received) == count

    def drive(self) -> None:
        if self._under_way is None and self.to_send:
            self._under_way = self.to_send.popleft()
            self._number = (self._number + 1) % 256
            self._send_message()
        elif self._under_way is not None and self._wire.is_empty and self._bench.cycle > self._resend_at:
            self._send_message()

    def _send_message(self) -> None:
        self._resend_at = self._bench.cycle + RETRANSMIT_CYCLES
        self.send(Frame(FrameKind.MESSAGE, self._number, self._dealt_with, self._under_way))

    def _damage(self, frame: bytearray) -> bytearray:
        if self._random.random() < self._damaged:
            return self._random.choice(list(DAMAGES.values()))(frame, self._random)
        return frame

    def _take_byte(self, byte: int) -> None:
        self._piece.append(byte)
        if len(self._piece) > 1 and byte == FLAG:
            for frame in self._deframer.frames(bytes(self._damage(self._piece))):
                self._take(frame)
            self._piece = bytearray()

    def _take(self, frame: Frame) -> None:
        self.frames[frame.kind] += 1
        if frame.kind is FrameKind.SYNCHRONIZED and frame.contents == self._awaited:
            self._awaited = None
        if frame.kind is FrameKind.SYNCHRONIZED or self._awaited is not None:
            return
        if self._under_way is not None and frame.dealt_with == self._number:
            self._under_way = None
        if frame.kind is FrameKind.MESSAGE:
            if frame.number == (self._dealt_with + 1) % 256:
                self._dealt_with = frame.number
                self.received.append(frame.contents)
            if not self.is_silent:
                self.acknowledge()

    def acknowledge(self) -> None:
        """Acknowledge the last message that was received."""
        self.send(Frame(FrameKind.ACKNOWLEDGE, 0, self._dealt_with))


def messages(count: int) -> list[bytes]:
    """Messages of different lengths, including the maximum."""
    return [anything(random.choice([1, 2, MESSAGE_BYTES, random.randrange(1, 40)])) for _ in range(count)]


async def synchronize(bench: Bench, peer: Peer, nonce: int) -> None:
    """Restart the link, with retries."""
    for _ in range(50):
        peer.begin(nonce)
        end = bench.cycle + RETRANSMIT_CYCLES
        while bench.cycle < end and not peer.has_begun:
            await bench.step()
        if peer.has_begun:
            return
    raise AssertionError("no answer")


@cocotb.test()
@STALLS
@cocotb.parametrize(damaged=[0.0, 0.2])
async def both_directions(dut, idle, backpressure, damaged):
    bench = await Bench.start(dut, "link")
    outgoing = bench.source("outgoing", idle)
    _, arrived = collect(bench, "incoming", backpressure)
    peer = Peer(bench, idle, backpressure, damaged)
    await synchronize(bench, peer, random.randrange(1, 1 << 32))
    to_device, to_peer = messages(MESSAGES), messages(MESSAGES)
    peer.to_send.extend(to_device)
    for message in to_peer:
        outgoing.send(*payloads(message))
    await bench.until(peer.has_all_of(len(to_peer)), 2_000_000)
    await bench.steps(100)
    assert arrived == to_device
    assert peer.received == to_peer
    if not damaged:
        # If an answer follows soon it carries the acknowledgement, and nothing is sent twice.
        assert peer.frames[FrameKind.MESSAGE] == len(to_peer)


@cocotb.test()
async def numbers_wrap(dut):
    bench = await Bench.start(dut, "link")
    outgoing = bench.source("outgoing")
    _, arrived = collect(bench, "incoming", 0.0)
    peer = Peer(bench, 0.0, 0.0, 0.0)
    await synchronize(bench, peer, 7)
    sent = [bytes([index % 251]) for index in range(600)]
    peer.to_send.extend(sent)
    for message in sent:
        outgoing.send(*payloads(message))
    await bench.until(peer.has_all_of(len(sent)), 200_000)
    await bench.steps(100)
    assert arrived == peer.received == sent


@cocotb.test()
async def acknowledgements_come_at_any_time(dut):
    """Acknowledgements arrive in different cycles of a retransmission, including those around its end."""
    bench = await Bench.start(dut, "link")
    outgoing = bench.source("outgoing")
    peer = Peer(bench, 0.0, 0.0, 0.0)
    peer.is_silent = True
    sends = bench.port("tx__valid")
    await synchronize(bench, peer, 7)
    sent = [anything(20) for _ in range(16)]
    for message in sent:
        outgoing.send(*payloads(message))
    for turn in range(len(sent)):
        await bench.until(lambda count=turn + 1: len(peer.received) == count)
        await bench.steps(RETRANSMIT_CYCLES // 2)
        await bench.until(lambda: int(sends.value) == 1, 2 * RETRANSMIT_CYCLES)
        await bench.steps(turn)
        for _ in range(8):
            peer.acknowledge()
    await bench.steps(RETRANSMIT_CYCLES)
    assert peer.received == sent


@cocotb.test()
async def nothing_happens_before_synchronization(dut):
    """Messages and acknowledgements before the link is synchronized have no effect."""
    bench = await Bench.start(dut, "link")
    _, arrived = collect(bench, "incoming", 0.0)
    peer = Peer(bench, 0.0, 0.0, 0.0)
    peer.to_send.append(b"\x01\x02")
    await bench.steps(2 * RETRANSMIT_CYCLES)
    assert arrived == []
    assert sum(peer.frames.values()) == 0
    await synchronize(bench, peer, 0)
    peer.to_send.append(b"\x03")
    await bench.until(lambda: peer.is_settled)
    await bench.steps(2 * ACKNOWLEDGE_CYCLES)
    assert arrived == [b"\x03"]


@cocotb.test()
@cocotb.parametrize(backpressure=[0.0, 0.6])
async def the_link_restarts(dut, backpressure):
    """The link can be restarted at any time; a repeated request with the same nonce changes nothing."""
    bench = await Bench.start(dut, "link")
    outgoing = bench.source("outgoing")
    peer = Peer(bench, 0.0, backpressure, 0.0)
    incoming = bench.sink("incoming", backpressure)
    restart = bench.port("restart")
    for turn in range(8):
        peer.begin(turn + 100)
        while not int(restart.value):
            assert bench.cycle < 200_000
            incoming.release()
            await bench.step()
        # State that depends on messages is reset in this cycle.
        outgoing.clear()
        incoming.received.clear()
        incoming.release()
        await bench.until(lambda: peer.has_begun)
        to_device, to_peer = messages(6), messages(6)
        peer.to_send.extend(to_device)
        for message in to_peer:
            outgoing.send(*payloads(message))
        await bench.steps(random.randrange(10, 1500))
        peer.send(request(turn + 100))
        if turn % 2:
            await bench.until(peer.has_all_of(6), 100_000)
            await bench.steps(200)
        expected = [payload for message in to_device for payload in payloads(message)]
        assert incoming.received == (expected if turn % 2 else expected[: len(incoming.received)])
        assert peer.received == to_peer[: 6 if turn % 2 else len(peer.received)]
