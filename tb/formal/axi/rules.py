"""The rules of AXI4 and AXI4-Lite as conditions on the signals of a port, written from the specification alone.

Sections are those of the AMBA AXI and ACE Protocol Specification, ARM IHI 0022E. Nothing here refers to the RTL: every
statement is about signals that the specification names, and what it counts, it counts on these signals. The same rules
are proved in :mod:`tb.formal.axi.ports` and watched in simulation by :mod:`tb.formal.axi.watch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from amaranth.hdl import Array, Module, Mux, Signal, Value

from openmxu.arch.config import ceil_log2
from tb.formal.axi.signals import Channel, LitePort, ReadPort, WritePort

__all__ = ["Rule", "Rules", "lite_rules", "read_rules", "write_rules"]

_PAGE = 12
"""Bits of an address within 4 KiB."""

_FIXED, _INCR, _WRAP = 0, 1, 2
_EXOKAY = 1

_LITE = 2
"""Accesses of AXI4-Lite that are counted, at least one more than may be open."""


@dataclass(frozen=True)
class Rule:
    """A condition that holds in every cycle.

    Attributes
    ----------
    section
        Where the specification states it.
    text
        The rule, in words, beginning with its channel.
    holds
        The condition.
    """

    section: str
    text: str
    holds: Value


@dataclass
class Rules:
    """The rules of one port.

    Attributes
    ----------
    manager, subordinate
        What each side has to obey.
    counts, lists
        What has been counted and listed, by name, for proofs.
    """

    manager: list[Rule] = field(default_factory=list)
    subordinate: list[Rule] = field(default_factory=list)
    counts: dict[str, Signal] = field(default_factory=dict)
    lists: dict[str, list[Signal]] = field(default_factory=dict)


def _handshake(m: Module, channel: Channel) -> Iterator[Rule]:
    """The rules of every channel, for its source. ``sync`` is the clock domain of the port, with its reset."""
    name = channel.name
    waits, was_reset = Signal(name=f"{name}_waits"), Signal(name=f"{name}_was_reset", init=1)
    offered = Signal.like(channel.payload, name=f"{name}_offered")
    m.d.sync += [waits.eq(channel.valid & ~channel.ready), offered.eq(channel.payload), was_reset.eq(0)]
    yield Rule("A3.1.2", f"{name}: VALID is low after an edge with reset", ~was_reset | ~channel.valid)
    yield Rule("A3.2.1", f"{name}: VALID stays until READY", ~waits | channel.valid)
    yield Rule(
        "A3.2.1",
        f"{name}: the payload stays while VALID waits for READY",
        ~(waits & channel.valid) | (offered == channel.payload),
    )


def _burst(channel: Channel, data_bytes: int) -> Iterator[Rule]:
    """The rules of a burst's address, and what managers with one ID and whole beats promise."""
    name, address, length = channel.name, channel["addr"], channel["len"]
    size, burst, cache = channel["size"], channel["burst"], channel["cache"]
    beats = length + 1
    mask = ((1 << size) - 1)[:7]
    aligned = (address[:7] & mask) == 0
    begin = (address[:_PAGE] - (address[:7] & mask))[:_PAGE]
    end = begin + (beats << size)
    wraps, fixed = burst == _WRAP, burst == _FIXED
    power = (length == 1) | (length == 3) | (length == 7) | (length == 15)

    def rule(section: str, text: str, holds: Value) -> Rule:
        return Rule(section, f"{name}: {text}", ~channel.valid | holds)

    yield rule("A3.4.1", "a beat is not wider than the bus", size <= ceil_log2(data_bytes))
    yield rule("A3.4.1", "the burst type is not the reserved one", burst != 3)
    yield rule("A3.4.1", "only INCR has more than 16 beats", (burst == _INCR) | (length < 16))
    yield rule("A3.4.1", "WRAP has 2, 4, 8 or 16 beats and is aligned", ~wraps | (power & aligned))
    yield rule("A3.4.1", "a burst does not cross 4 KiB", wraps | fixed | (end <= 1 << _PAGE))
    yield rule("A4.4", "only modifiable transactions are allocated", cache[1] | (cache[2:] == 0))
    exclusive = (length < 16) & aligned & ((beats << size) <= 128)
    yield rule("A7.2.4", "exclusive accesses have at most 16 beats and 128 bytes", ~channel["lock"] | exclusive)
    yield rule("A5.3", "one ID: answers come in the order of bursts", channel["id"] == 0)
    yield rule("A3.4.3", "whole, aligned beats: every strobe is legal", (size == ceil_log2(data_bytes)) & aligned)


def _counter(m: Module, name: str, outstanding: int, steps: Value) -> Signal:
    """Counts modulo four times the most that can be outstanding, because differences of counters may be negative."""
    counter = Signal(range(4 * outstanding), name=name)
    m.d.sync += counter.eq(counter + steps)
    return counter


def _between(later: Signal, earlier: Signal) -> Value:
    """Difference of two counters."""
    return (later - earlier)[: len(later)]


def _entry(entries: list[Signal], counter: Signal) -> Value:
    """The one of as many entries as can be outstanding that belongs to a count."""
    return Array(entries)[counter[: ceil_log2(len(entries))]]


def read_rules(m: Module, port: ReadPort, data_bytes: int, outstanding: int) -> Rules:
    """The rules of AXI4's read channels.

    Parameters
    ----------
    m
        Module that gets the counters, in its ``sync`` domain: that of the port, with its reset.
    port
        The signals.
    data_bytes
        Width of the bus.
    outstanding
        The most bursts that may be without an answer, a power of two. The specification has no limit.
    """
    ar, r = port.ar, port.r
    issued = _counter(m, "ar_issued", outstanding, ar.transfers)
    finished = _counter(m, "r_finished", outstanding, r.transfers & r["last"])
    lengths = [Signal(8, name=f"ar_length_{place}") for place in range(outstanding)]
    beats = Signal(9, name="r_beats")
    with m.If(ar.transfers):
        m.d.sync += _entry(lengths, issued).eq(ar["len"])
    with m.If(r.transfers):
        m.d.sync += beats.eq(Mux(r["last"], 0, beats + 1))
    open_ = _between(issued, finished)
    is_last = beats == _entry(lengths, finished)
    rules = Rules(counts={"issued": issued, "finished": finished})
    rules.manager += [
        *_handshake(m, ar),
        *_burst(ar, data_bytes),
        Rule("ours", "AR: no more bursts than promised are outstanding", ~ar.valid | (open_ < outstanding)),
    ]
    rules.subordinate += [
        *_handshake(m, r),
        Rule("A3.3.1", "R: data answers a burst", ~r.valid | (open_ != 0)),
        Rule("A3.4.1", "R: LAST is on the last beat of its burst and on no other", ~r.valid | (r["last"] == is_last)),
        Rule("A5.3", "R: the ID is that of the burst", ~r.valid | (r["id"] == 0)),
        Rule("A7.2.3", "R: EXOKAY only answers exclusive accesses", ~r.valid | (r["resp"] != _EXOKAY)),
    ]
    return rules


def write_rules(m: Module, port: WritePort, data_bytes: int, outstanding: int) -> Rules:
    """The rules of AXI4's write channels; parameters are those of :func:`read_rules`.

    Data may come before its address, after it or with it, by any number of bursts: whichever comes first is remembered.
    """
    aw, w, b = port.aw, port.w, port.b
    addressed = _counter(m, "aw_issued", outstanding, aw.transfers)
    written = _counter(m, "w_finished", outstanding, w.transfers & w["last"])
    answered = _counter(m, "b_answered", outstanding, b.transfers)
    lengths = [Signal(8, name=f"aw_length_{place}") for place in range(outstanding)]
    sent = [Signal(8, name=f"w_length_{place}") for place in range(outstanding)]
    beats = Signal(9, name="w_beats")
    with m.If(aw.transfers):
        m.d.sync += _entry(lengths, addressed).eq(aw["len"])
    with m.If(w.transfers):
        m.d.sync += beats.eq(Mux(w["last"], 0, beats + 1))
        with m.If(w["last"]):
            m.d.sync += _entry(sent, written).eq(beats)
    ahead = _between(addressed, written)  # bursts whose address came before the end of their data
    addresses_lead, data_leads = (ahead != 0) & ~ahead[-1], ahead[-1]
    length = Signal(8, name="w_length")
    m.d.comb += length.eq(Mux(addresses_lead, _entry(lengths, written), aw["len"]))
    known = addresses_lead | ((ahead == 0) & aw.valid)
    compared = w.valid & known
    unanswered = (_between(addressed, answered), _between(written, answered))
    rules = Rules(
        counts={"addressed": addressed, "written": written, "answered": answered, "beats": beats},
        lists={"lengths": lengths, "sent": sent},
    )
    rules.manager += [
        *_handshake(m, aw),
        *_handshake(m, w),
        *_burst(aw, data_bytes),
        Rule("A3.4.1", "W: LAST is not before the last beat of its burst", ~compared | ~w["last"] | (beats >= length)),
        Rule("A3.4.1", "W: LAST is not missing on the last beat", ~compared | w["last"] | (beats < length)),
        Rule("A3.4.1", "W: no beat follows the last one of its burst", ~known | (beats <= length)),
        Rule(
            "A3.4.1",
            "W: data before its address has as many beats as the address says",
            ~(aw.valid & data_leads) | (aw["len"] == _entry(sent, addressed)),
        ),
        Rule("A3.4.1", "W: a burst has at most 256 beats", ~w.valid | (beats < 256)),
        Rule("ours", "AW: no more bursts than promised are outstanding", ~aw.valid | (unanswered[0] < outstanding)),
        Rule("ours", "W: no more bursts than promised are outstanding", ~w.valid | (unanswered[1] < outstanding)),
    ]
    rules.subordinate += [
        *_handshake(m, b),
        Rule(
            "A3.3.1",
            "B: a response follows the address and the last beat of its burst",
            ~b.valid | ((unanswered[0] != 0) & (unanswered[1] != 0)),
        ),
        Rule("A5.3", "B: the ID is that of the burst", ~b.valid | (b["id"] == 0)),
        Rule("A7.2.3", "B: EXOKAY only answers exclusive accesses", ~b.valid | (b["resp"] != _EXOKAY)),
    ]
    return rules


def lite_rules(m: Module, port: LitePort) -> Rules:
    """The rules of AXI4-Lite; ``m`` and ``port`` as in :func:`read_rules`."""
    addressed, written = (_counter(m, f"lite_{c.name}_taken", _LITE, c.transfers) for c in (port.aw, port.w))
    answered = _counter(m, "lite_B_answered", _LITE, port.b.transfers)
    asked = _counter(m, "lite_AR_taken", _LITE, port.ar.transfers)
    read = _counter(m, "lite_R_answered", _LITE, port.r.transfers)
    writes, data, reads = _between(addressed, answered), _between(written, answered), _between(asked, read)
    rules = Rules(
        counts={"addressed": addressed, "written": written, "answered": answered, "asked": asked, "read": read}
    )
    for channel in (port.aw, port.w, port.ar):
        rules.manager += _handshake(m, channel)
    b, r = port.b, port.r
    rules.subordinate += [
        *_handshake(m, b),
        *_handshake(m, r),
        Rule("A3.3.1", "B: a response follows address and data of its write", ~b.valid | ((writes != 0) & (data != 0))),
        Rule("A3.3.1", "R: data follows the address of its read", ~r.valid | (reads != 0)),
        Rule("B1.1.1", "B: the response is not EXOKAY", ~b.valid | (b["resp"] != _EXOKAY)),
        Rule("B1.1.1", "R: the response is not EXOKAY", ~r.valid | (r["resp"] != _EXOKAY)),
        Rule("ours", "AW, W, AR: one access at a time", (writes <= 1) & (data <= 1) & (reads <= 1)),
    ]
    return rules
