"""Faults planted in the units behind the ports, each of which violates a rule that the proofs claim."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from openmxu.rtl.axi.burst_queue import BurstQueue
from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.top import Top
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.common.register_slice import StreamRegister
from tb.formal.axi.ports import ReadsPort, RegistersPort, WritesPort
from tb.formal.proof import Proof

__all__ = ["FAULTS", "Fault", "planted"]


@dataclass(frozen=True)
class Fault:
    """A change of one method of a unit.

    Attributes
    ----------
    name
        What is wrong.
    port
        Makes the proof of the port.
    unit, method
        Where it is planted.
    old, new
        A text in the source of the method, and what stands there instead.
    rule
        Beginning of the rule that is violated.
    cycles
        Cycles after reset within which it is.
    """

    name: str
    port: Callable[[], Proof]
    unit: type
    method: str
    old: str
    new: str
    rule: str
    cycles: int = 10


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Plant a fault until the end of the block.

    Raises
    ------
    ValueError
        The method's source does not have the text exactly once: the fault has to be written anew.
    """
    original = getattr(fault.unit, fault.method)
    source = textwrap.dedent(inspect.getsource(original))
    if source.count(fault.old) != 1:
        raise ValueError(
            f"{fault.name}: {fault.unit.__name__}.{fault.method} must contain {fault.old!r} once, "
            f"not {source.count(fault.old)} times"
        )
    namespace: dict[str, object] = {}
    exec(compile(source.replace(fault.old, fault.new), f"<{fault.name}>", "exec"), original.__globals__, namespace)
    setattr(fault.unit, fault.method, namespace[fault.method])
    try:
        yield
    finally:
        setattr(fault.unit, fault.method, original)


_WEIGHTS = partial(ReadsPort, is_host=False)
_READS = partial(ReadsPort, is_host=True)

_SEND = "with m.If(~self.addresses.valid | self.addresses.ready):\n"
_LAST = "is_last.eq((first_ends_left == 0) | ((first_ends_left == 1) & (first_end_place == 0))),"
_RESET = "m = Module()\n    "


def _drop(channel: str) -> str:
    """Source that withdraws an offer of a channel after one cycle."""
    stalls = f"with m.If({channel}.valid & ~{channel}.ready):\n        m.d.sync += {channel}.valid.eq(0)\n"
    return f"{stalls}    with m.Else():\n"


def _not_reset(channel: str) -> str:
    """The beginning of a method that makes a channel's valid keep its value in a reset."""
    return f"{_RESET}{channel}.valid._reset_less = True\n    "


def _managers(name: str, port: Callable[[], Proof], channel: str) -> Iterator[Fault]:
    """Faults of the address channel of any manager."""

    def queue(text: str, old: str, new: str, rule: str) -> Fault:
        return Fault(f"{name}: {text}", port, BurstQueue, "elaborate", old, new, f"{channel}: {rule}")

    yield queue("VALID drops while it waits", _SEND, _drop("self.addresses"), "VALID stays")
    address = "m.d.sync += sent.addr.eq(self.address)\n    "
    yield queue("the address changes while it waits", _SEND, address + _SEND, "the payload stays")
    yield queue("VALID is not reset", _RESET, _not_reset("self.addresses"), "VALID is low")
    yield queue("the queue overflows", "has_room.eq(self.pop |", "has_room.eq(1 |", "no more bursts")
    yield Fault(
        f"{name}: bursts are not split",
        port,
        BurstSplitter,
        "elaborate",
        _LAST,
        "is_last.eq(1),",
        f"{channel}: a burst",
    )
    size = '"size": (3, ceil_log2(data_bytes))'
    yield Fault(
        f"{name}: beats are wider than the bus",
        *(port, Top, "_constants", size, '"size": (3, ceil_log2(data_bytes) + 1)'),
        f"{channel}: a beat is not wider",
    )


def _writes(text: str, old: str, new: str, rule: str, unit: type = WriteManager, method: str = "elaborate") -> Fault:
    return Fault(f"host memory, write: {text}", WritesPort, unit, method, old, new, rule)


def _sends(text: str, old: str, new: str, rule: str) -> Fault:
    return _writes(text, old, new, f"W: {rule}", method="_send")


def _registers(text: str, old: str, new: str, rule: str) -> Fault:
    return Fault(f"registers: {text}", RegistersPort, LiteSubordinate, "elaborate", old, new, rule)


_LAST_BEAT = "(count == lengths.payload)"
_EARLY = "((count + 1 == lengths.payload) | ~lengths.payload.any())"
_TAKES = "with m.If(self.input.ready):\n"
_DATA = "connect(m, beats.output, flipped(self.bus.w))"
_PAST_REGISTER = """m.d.comb += [
        self.bus.w.valid.eq(beats.output.valid),
        self.bus.w.payload.eq(beats.output.payload),
        self.bus.w.p.data.eq(self.port.data.p.data),
        beats.output.ready.eq(self.bus.w.ready),
    ]"""

_ANSWERED = 'bus.r.valid.eq(0)\n                m.next = "IDLE"'
_ANSWER = 'with m.State("ANSWER"):\n'
_MOVES = "m.d.sync += bus.r.p.data.eq(self.responses.payload)\n"

FAULTS: tuple[Fault, ...] = (
    *_managers("weights", _WEIGHTS, "AR"),
    *_managers("host memory, read", _READS, "AR"),
    Fault(
        "host memory, read: a burst for the program is a beat too long",
        *(_READS, ReadManager, "_bursts", "requests.p.beats[:9] - 1", "requests.p.beats[:9]"),
        "AR: a burst does not cross",
    ),
    *_managers("host memory, write", WritesPort, "AW"),
    _sends("LAST is a beat early", _LAST_BEAT, _EARLY, "LAST is not before"),
    _sends("LAST is missing", _LAST_BEAT, "((count == lengths.payload) & (count != 0))", "LAST is not missing"),
    _sends("the count of beats is not reset", "count = Signal(8", "count = Signal(8, reset_less=True", "LAST is not"),
    _sends("a flush ends a burst early", "lengths.ready.eq(sent", "lengths.ready.eq(self.flush | sent", "LAST is not"),
    _writes("lengths are repeated", "burst.valid & queue.bursts.ready", "burst.valid", "W: "),
    _writes("VALID of data drops while it waits", _TAKES, _drop("self.output"), "W: VALID stays", StreamRegister),
    _writes("data changes while it waits", _DATA, _PAST_REGISTER, "W: the payload stays"),
    _registers("a response is withdrawn", "with m.If(bus.b.ready):", "with m.If(1):", "B: VALID stays"),
    _registers("a response before its data", "aw.valid & bus.w.valid &", "aw.valid &", "B: a response follows"),
    _registers("a read is answered twice", _ANSWERED, _ANSWERED.replace("IDLE", "WAIT"), "R: data follows"),
    _registers("EXOKAY", "bus.b.p.resp.eq(_SLVERR)", "bus.b.p.resp.eq(1)", "B: the response is not EXOKAY"),
    _registers("VALID of data is not reset", _RESET, _not_reset("self.bus.r"), "R: VALID is low"),
    _registers("data changes while it waits", _ANSWER, f"{_ANSWER}            {_MOVES}", "R: the payload stays"),
)
"""All faults; each rule about handshakes, bursts and order is violated by some of them."""
