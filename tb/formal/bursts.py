"""Bursts: AXI allows every one, and together they are the bytes that were asked for and no others."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Module, Signal, Value

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.burst_splitter import BurstSplitter, block_beats
from openmxu.rtl.axi.channels import PAGE_BYTES
from openmxu.rtl.common.interfaces import BEATS_WIDTH
from tb.formal.proof import Proof

__all__ = ["Splitting", "is_legal"]


def is_legal(address: Value, length: Value, data_bytes: int) -> Value:
    """Whether a burst of ``length`` + 1 beats is aligned and within a page; INCR allows 256 beats."""
    page = ceil_log2(PAGE_BYTES)
    last = (address + (length << ceil_log2(data_bytes)))[: len(address)]
    return (address[: ceil_log2(data_bytes)] == 0) & (last[page:] == address[page:]) & (last >= address)


class Splitting(Proof):
    """The burst splitter, for one width of the bus."""

    def __init__(self, data_bytes: int) -> None:
        self._address_width = 14
        self._data_bytes = data_bytes
        unit = partial(BurstSplitter, self._address_width, data_bytes)
        super().__init__(unit, f"BurstSplitter, {8 * data_bytes} bits")

    def state(self, m: Module) -> None:
        unit, size = self.unit, self._data_bytes
        burst, beat_bits = unit.bursts.p, ceil_log2(size)
        waits, beats_left, steps = Signal(), Signal(BEATS_WIDTH), Signal()
        beat = Signal(self._address_width - beat_bits)
        self.assume(m, ~unit.requests.valid | (unit.requests.p.beats != 0))
        self.assume(m, unit.offset[: ceil_log2(PAGE_BYTES)] == 0)
        # A request in beats, and what is left of it.
        sent = unit.bursts.valid & unit.bursts.ready
        m.d.sync += steps.eq(sent & ~burst.last & ~unit.flush)
        with m.If(unit.requests.valid & unit.requests.ready):
            first = (unit.requests.p.address + unit.offset)[beat_bits : self._address_width]
            m.d.sync += [waits.eq(~unit.flush), beat.eq(first), beats_left.eq(unit.requests.p.beats)]
        with m.Elif(sent):
            m.d.sync += [
                waits.eq(~unit.flush & (beats_left != burst.len + 1)),
                beat.eq(beat + burst.len + 1),
                beats_left.eq(beats_left - burst.len - 1),
            ]
        with m.Elif(steps & unit.flush):
            m.d.sync += waits.eq(0)
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
        self.claim(
            m,
            "there are bursts while there is a request, but for a cycle between two, and no others",
            unit.bursts.valid == (waits & ~steps),
        )
        self.lemma(m, self.inside("steps") == steps)
        self.lemma(m, ~steps | waits)
        self.claim(m, "what is offered stays until it is taken, also when flushed", self.kept(m, unit.bursts))
        self.lemma(m, ~waits | (beats_left != 0))
        self.lemma(m, ~waits | (beats_left == self.inside("beats_left")))
        room, block = self.inside("room"), block_beats(size)
        place = unit.bursts.p.addr[beat_bits:][: ceil_log2(block)]
        self.lemma(m, ~waits | (room == block - place))
        self.lemma(m, ~waits | steps | (burst.last == (beats_left <= room)))
        self.lemma(m, self.inside("idle") == ~waits)
        self.lemma(m, self.inside("offers") + steps == waits)
        self.reach(m, sent & burst.last & (burst.len == block_beats(size) - 1))
        self.reach(m, sent & ~burst.last)
