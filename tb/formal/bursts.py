"""Bursts obey the rules of AXI, and together they cover exactly the bytes that were requested."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.shell.interfaces import PAGE_BYTES, block_beats
from tb.formal.proof import Proof

__all__ = ["QueuedBursts", "Splitting", "is_legal", "know_splitter", "left_to_split"]


def is_legal(address: Value, length: Value, data_bytes: int) -> Value:
    """Whether a burst of ``length`` + 1 beats is aligned and within a page; INCR allows 256 beats."""
    page = ceil_log2(PAGE_BYTES)
    last = (address + (length << ceil_log2(data_bytes)))[: len(address)]
    return (address[: ceil_log2(data_bytes)] == 0) & (last[page:] == address[page:]) & (last >= address)


def left_to_split(proof: Proof, prefix: str) -> Value:
    """Beats of its request that a burst splitter has not sent yet.

    Parameters
    ----------
    proof
        Proof of the unit.
    prefix
        Name of the splitter followed by a dot, or "" if it is the unit itself.
    """
    end = Cat(proof.inside(f"{prefix}end_place"), proof.inside(f"{prefix}ends_left"))
    return (end - proof.inside(f"{prefix}place"))[: len(end)]


def know_splitter(proof: Proof, m: Module, prefix: str) -> None:
    """Add lemmas about a burst splitter in a unit: it has not reached the end of its request, and after the first block
    it is at the beginning of a block. Parameters are those of :func:`left_to_split`."""
    place, block = (proof.inside(f"{prefix}{name}") for name in ("place", "block"))
    end_place, ends_left = (proof.inside(f"{prefix}{name}") for name in ("end_place", "ends_left"))
    with m.If(proof.inside(f"{prefix}active")):
        proof.lemma(m, place < Cat(end_place, ends_left))
        proof.lemma(m, (block == 0) | (place == 0))
        proof.lemma(m, proof.inside(f"{prefix}is_last") == (Cat(end_place, ends_left) <= (1 << len(place))))


class QueuedBursts:
    """The bursts in a :class:`~openmxu.rtl.axi.burst_queue.BurstQueue` of a unit. Adds lemmas: its flags match its
    pointers.

    Parameters
    ----------
    proof
        Proof of the unit.
    m
        Module that gets the lemmas.
    prefix
        Name of the queue followed by a dot.
    depth, address_width, data_bytes
        Those of the queue.

    Attributes
    ----------
    held, unsent
        Number of bursts in the queue, and of those that are not in the register of the address channel yet.
    produce, send, consume
        Its pointers.
    """

    def __init__(self, proof: Proof, m: Module, prefix: str, depth: int, address_width: int, data_bytes: int) -> None:
        self._proof, self._prefix, self._depth = proof, prefix, depth
        self._beat_bits = ceil_log2(data_bytes)
        self._beat_width = address_width - self._beat_bits
        names = ("produce", "send", "consume", "has_room", "has_unsent", "valid")
        produce, send, consume, has_room, has_unsent, valid = (proof.inside(f"{prefix}{name}") for name in names)
        held, unsent = Signal(range(depth + 1)), Signal(range(depth + 1))
        m.d.comb += [
            held.eq(Mux(valid & (produce == consume), depth, self.distance(consume, produce))),
            unsent.eq(Mux(has_unsent & (produce == send), depth, self.distance(send, produce))),
        ]
        for place in (produce, send, consume):
            proof.lemma(m, place < depth)
        proof.lemma(m, (unsent <= held) & (valid == (held != 0)) & (has_unsent == (unsent != 0)))
        proof.lemma(m, has_room == (held != depth))
        self.produce, self.send, self.consume, self.held, self.unsent = produce, send, consume, held, unsent

    def distance(self, first: Value, second: Value) -> Value:
        """Entries from one place to another."""
        return Mux(second >= first, second - first, second + self._depth - first)

    def is_unsent(self, place: int) -> Value:
        """Whether the burst in a place waits to be sent."""
        return self.distance(self.send, Const(place, len(self.send))) < self.unsent

    def stored(self, place: int) -> data.View:
        """The entry in a place: ``len``, and the address in beats as ``beat``."""
        layout = data.StructLayout({"len": 8, "beat": self._beat_width})
        word = self._proof.stored(f"{self._prefix}bursts", Const(place, len(self.send)), layout.size)
        return data.View(layout, word)

    def address(self, place: int) -> Value:
        """The address in bytes of the burst in a place."""
        return Cat(Const(0, self._beat_bits), self.stored(place).beat)


class Splitting(Proof):
    """The burst splitter, for one bus width."""

    def __init__(self, data_bytes: int) -> None:
        self._address_width = 14
        self._data_bytes = data_bytes
        unit = partial(BurstSplitter, self._address_width, data_bytes)
        super().__init__(unit, f"BurstSplitter, {8 * data_bytes} bits")

    def state(self, m: Module) -> None:
        unit, size = self.unit, self._data_bytes
        burst, beat_bits = unit.bursts.p, ceil_log2(size)
        waits, beats_left = Signal(), Signal.like(unit.requests.p.beats)
        beat = Signal(self._address_width - beat_bits)
        self.assume(m, ~unit.requests.valid | (unit.requests.p.beats != 0))
        self.assume(m, unit.offset[: ceil_log2(PAGE_BYTES)] == 0)
        # A request in beats, and how much of it is left.
        sent = unit.bursts.valid & unit.bursts.ready
        with m.If(unit.requests.valid & unit.requests.ready):
            first = (unit.requests.p.address + unit.offset)[beat_bits : self._address_width]
            m.d.sync += [waits.eq(~unit.flush), beat.eq(first), beats_left.eq(unit.requests.p.beats)]
        with m.Elif(sent):
            m.d.sync += [
                waits.eq(~unit.flush & (beats_left != burst.len + 1)),
                beat.eq(beat + burst.len + 1),
                beats_left.eq(beats_left - burst.len - 1),
            ]
        with m.If(unit.bursts.valid):
            self.claim(m, "a burst is aligned and does not cross 4 KiB", is_legal(burst.addr, burst.len, size))
            self.claim(
                m,
                "a burst has full length but at the ends of its request",
                burst.last | ((burst.addr[beat_bits:] + burst.len + 1)[: ceil_log2(block_beats(size))] == 0),
            )
            self.claim(m, "bursts follow each other without gap or overlap", burst.addr[beat_bits:] == beat)
            self.claim(m, "a request's bursts have its beats, no more and no less", burst.len < beats_left)
            self.claim(
                m, "a request's bursts have its beats, no more and no less", burst.last == (burst.len + 1 == beats_left)
            )
        self.claim(m, "there are bursts while there is a request, and no others", unit.bursts.valid == waits)
        self.claim(m, "what is offered stays until it is taken, also when flushed", self.kept(m, unit.bursts))
        know_splitter(self, m, "")
        self.lemma(m, ~waits | (beats_left == left_to_split(self, "")))
        self.reach(m, sent & burst.last & (burst.len == block_beats(size) - 1))
        self.reach(m, sent & ~burst.last)
