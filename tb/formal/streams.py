"""Queues neither lose, invent nor reorder payloads, and keep what they offer stable."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value

from openmxu.arch.config import ceil_log2
from openmxu.rtl.common.buffered_fifo import BufferedFIFO
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.stream_fifo import StreamFIFO
from tb.formal.proof import Proof

__all__ = ["BufferedContract", "FifoContract", "FifoOrder", "SliceContract"]

_WIDTH = 3


def _transfers(interface) -> Value:
    return interface.valid & interface.ready


def know_queue(proof: Proof, m: Module, prefix: str, depth: int, *, always_ready: bool = False) -> None:
    """Add lemmas about flags, pointers and level of a :class:`~openmxu.rtl.common.stream_fifo.StreamFIFO` in a unit.

    Parameters
    ----------
    proof
        Proof that gets the lemmas.
    m
        Module of the proof's state.
    prefix
        Name of the queue followed by a dot, or "" if it is the unit itself.
    depth
        Depth of the queue.
    always_ready
        Whether the queue has no flag that it is full.
    """
    level = proof.inside(f"{prefix}level")
    begin, end = proof.inside(f"{prefix}consume"), proof.inside(f"{prefix}produce")
    proof.lemma(m, level <= depth)
    proof.lemma(m, proof.inside(f"{prefix}has_payload") == (level != 0))
    if not always_ready:
        proof.lemma(m, proof.inside(f"{prefix}is_full") == (level == depth))
    proof.lemma(m, begin < depth)
    proof.lemma(m, end == Mux(begin + level < depth, begin + level, begin + level - depth))


class FifoContract(Proof):
    """A FIFO obeys the stream rules, and its level is correct."""

    def __init__(self, depth: int) -> None:
        super().__init__(lambda: StreamFIFO(_WIDTH, depth), f"StreamFIFO, depth {depth}")
        self._depth = depth

    def state(self, m: Module) -> None:
        fifo = self.unit
        held = Signal(range(self._depth + 1))
        m.d.sync += held.eq(held + _transfers(fifo.input) - _transfers(fifo.output))
        know_queue(self, m, "", self._depth)
        self.claim(m, "what the output offers stays until it is taken", self.kept(m, fifo.output))
        self.claim(m, "level is what came minus what left, and never more than the depth", fifo.level == held)
        self.claim(
            m,
            "it takes while it is not full, and offers while it is not empty",
            fifo.input.ready == (held != self._depth),
        )
        self.claim(
            m, "it takes while it is not full, and offers while it is not empty", fifo.output.valid == (held != 0)
        )
        self.reach(m, held == self._depth)


class _Order(Proof):
    """Follows one arbitrary payload through a queue."""

    def state(self, m: Module) -> None:
        queue, depth = self.unit, self.places
        chosen = self.free("chosen")
        follows = Signal()
        ahead = Signal(range(depth + 1))
        payload = Signal(_WIDTH)
        held = Signal(range(depth + 1))
        pushes, pops = _transfers(queue.input), _transfers(queue.output)
        m.d.sync += held.eq(held + pushes - pops)
        with m.If(~follows & chosen & pushes):
            m.d.sync += [follows.eq(1), ahead.eq(held - pops), payload.eq(queue.input.payload)]
        with m.Elif(follows & pops):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += follows.eq(0)
        with m.If(follows & (ahead == 0)):
            self.claim(m, self.text, queue.output.valid & (queue.output.payload == payload))
        self.held, self.follows, self.ahead, self.payload = held, follows, ahead, payload
        self.reach(m, follows & (held == depth) & (ahead == 0))

    def queued(self, m: Module, prefix: str, depth: int, ahead: Value) -> Value:
        """The payload with ``ahead`` others before it in a StreamFIFO, named as in :func:`know_queue`."""
        place = Signal(range(2 * depth))
        m.d.comb += place.eq(self.inside(f"{prefix}consume") + ahead)
        index = Mux(place < depth, place, place - depth)[: ceil_log2(depth)]
        return self.stored(f"{prefix}storage", index, _WIDTH)

    text = "a payload comes out unchanged, when all before it have come out"


class FifoOrder(_Order):
    """A FIFO delivers payloads in order; one that is always ready, as long as nobody sends to a full one."""

    def __init__(self, depth: int, *, always_ready: bool = False) -> None:
        name = f"StreamFIFO, depth {depth}, {'always ready, ' if always_ready else ''}order"
        super().__init__(lambda: StreamFIFO(_WIDTH, depth, always_ready=always_ready), name)
        self.places = depth
        self._always_ready = always_ready

    def state(self, m: Module) -> None:
        super().state(m)
        depth = self.places
        if self._always_ready:
            self.assume(m, ~self.unit.input.valid | (self.held != depth))
        self.lemma(m, self.unit.level == self.held)
        know_queue(self, m, "", depth, always_ready=self._always_ready)
        with m.If(self.follows):
            self.lemma(m, self.ahead < self.held)
            self.lemma(m, self.queued(m, "", depth, self.ahead) == self.payload)


class BufferedContract(_Order):
    """A FIFO with its oldest payload in a register delivers payloads in order, fills up, and obeys the stream rules."""

    def __init__(self, depth: int) -> None:
        super().__init__(lambda: BufferedFIFO(_WIDTH, depth), f"BufferedFIFO, depth {depth}")
        self.places = depth

    def state(self, m: Module) -> None:
        super().state(m)
        queue, has_oldest, level = self.unit, self.inside("has_oldest"), self.inside("others.level")
        behind = self.places - 1
        self.claim(m, "what the output offers stays until it is taken", self.kept(m, queue.output))
        self.claim(m, "it takes while it is not full", queue.input.ready == (self.held != self.places))
        self.claim(m, "it offers while it is not empty", queue.output.valid == (self.held != 0))
        know_queue(self, m, "others.", behind)
        self.lemma(m, has_oldest | (level == 0))
        self.lemma(m, self.held == has_oldest + level)
        with m.If(self.follows):
            self.lemma(m, self.ahead < self.held)
            with m.If(self.ahead == 0):
                self.lemma(m, self.inside("oldest") == self.payload)
            with m.Else():
                self.lemma(m, self.queued(m, "others.", behind, self.ahead - 1) == self.payload)


class SliceContract(_Order):
    """A register slice delivers payloads in order and obeys the stream rules."""

    def __init__(self) -> None:
        super().__init__(lambda: RegisterSlice(_WIDTH), "RegisterSlice")
        self.places = 2

    def state(self, m: Module) -> None:
        super().state(m)
        queue, has_first, has_room = self.unit, self.inside("has_first"), self.inside("has_room")
        self.claim(m, "what the output offers stays until it is taken", self.kept(m, queue.output))
        self.lemma(m, has_first | has_room)
        self.lemma(m, self.held == has_first + ~has_room)
        with m.If(self.follows):
            self.lemma(m, self.ahead < self.held)
            with m.If(self.ahead == 1):
                self.lemma(m, self.inside("spare") == self.payload)
            with m.Else():
                self.lemma(m, self.inside("first") == self.payload)
