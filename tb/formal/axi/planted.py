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
    """

    name: str
    port: Callable[[], Proof]
    unit: type
    method: str
    old: str
    new: str
    rule: str


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


def _managers(name: str, port: Callable[[], Proof], channel: str) -> Iterator[Fault]:
    """Faults of the address channel of any manager."""

    def queue(text: str, old: str, new: str, rule: str) -> Fault:
        return Fault(f"{name}: {text}", port, BurstQueue, "elaborate", old, new, f"{channel}: {rule}")

    yield queue("VALID drops while it waits", _SEND, "with m.If(1):\n", "VALID stays")
    address = "m.d.sync += sent.addr.eq(self.address)\n    "
    yield queue("the address changes while it waits", _SEND, address + _SEND, "the payload stays")
    reset = f"{_RESET}self.addresses.valid.reset_less = True\n    "
    yield queue("VALID is not reset", _RESET, reset, "VALID is low")
    yield queue("the queue overflows", "self.bursts.ready.eq(has_room)", "self.bursts.ready.eq(1)", "no more bursts")
    yield Fault(
        f"{name}: bursts are not split", port, BurstSplitter, "elaborate", _LAST, "is_last.eq(1),", f"{channel}: a burst"
    )
    size = '"size": (3, ceil_log2(data_bytes))'
    yield Fault(
        f"{name}: beats are wider than the bus",
        *(port, Top, "_constants", size, '"size": (3, ceil_log2(data_bytes) + 1)'),
        f"{channel}: a beat is not wider",
    )


def _writes(text: str, old: str, new: str, rule: str, unit: type = WriteManager, method: str = "elaborate") -> Fault:
    return Fault(f"host memory, write: {text}", WritesPort, unit, method, old, new, rule)


def _registers(text: str, old: str, new: str, rule: str) -> Fault:
    return Fault(f"registers: {text}", RegistersPort, LiteSubordinate, "elaborate", old, new, rule)


_COUNTS = "beats.p.last.eq(count == lengths.payload)"
_HELD = "m.d.sync += [held.eq(self.input.payload), self.output.valid.eq(self.input.valid)]"

FAULTS: tuple[Fault, ...] = (
    *_managers("weights", _WEIGHTS, "AR"),
    *_managers("host memory, read", _READS, "AR"),
    Fault(
        "host memory, read: a burst for the program is a beat too long",
        *(_READS, ReadManager, "_bursts", "requests.p.beats[:9] - 1", "requests.p.beats[:9]"),
        "AR: a burst does not cross",
    ),
    *_managers("host memory, write", WritesPort, "AW"),
    _writes("LAST is a beat early", _COUNTS, _COUNTS.replace("count ==", "count + 1 =="), "W: LAST is not", method="_send"),
    _writes("LAST is missing", _COUNTS, _COUNTS.replace("payload", "payload) & (count != 0"), "W: ", method="_send"),
    _writes("the count of beats is not reset", "Signal(8)", "Signal(8, reset_less=True)", "W: LAST", method="_send"),
    _writes("a flush ends a burst early", "lengths.ready.eq(sent", "lengths.ready.eq(self.flush | sent", "W: ", method="_send"),
    _writes("lengths are repeated", "burst.valid & queue.bursts.ready", "burst.valid", "W: "),
    _writes("VALID of data drops while it waits", _HELD, f"pass\n    {_HELD}", "W: VALID stays", StreamRegister),
    _writes("data changes while it waits", _HELD, f"pass\n    {_HELD.replace(', self.output', ']#')}", "W: the payload", StreamRegister),
    _registers("a response is withdrawn", "with m.If(bus.b.ready):", "with m.If(1):", "B: VALID stays"),
    _registers("a response before its data", "bus.aw.valid & bus.w.valid &", "bus.aw.valid &", "B: a response follows"),
    _registers("a read is answered twice", 'bus.r.valid.eq(0)\n                m.next = "IDLE"', 'bus.r.valid.eq(0)\n                m.next = "WAIT"', "R: data follows"),
    _registers("EXOKAY", "bus.b.p.resp.eq(_SLVERR)", "bus.b.p.resp.eq(1)", "B: the response is not EXOKAY"),
    _registers("VALID of data is not reset", _RESET, f"{_RESET}self.bus.r.valid.reset_less = True\n    ", "R: VALID is low"),
    _registers("data changes while it waits", 'with m.State("ANSWER"):\n', 'with m.State("ANSWER"):\n            m.d.sync += bus.r.p.data.eq(self.responses.payload)\n', "R: the payload stays"),
)
