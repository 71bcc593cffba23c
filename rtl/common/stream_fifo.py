"""A small FIFO with stream interfaces and a shaped payload."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.common.counting import up_down

__all__ = ["StreamFIFO"]


class StreamFIFO(wiring.Component):
    """First in, first out; a payload leaves in the cycle after it came, at the earliest.

    Storage is read asynchronously: distributed RAM or registers, for queues of a few entries. ``input.ready`` and
    ``output.valid`` are registers, because the logic of the surrounding units depends on them.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Entries, at least 1.
    always_ready
        Nothing shows whether the queue is full: whoever sends knows that there is room.

    Members
    -------
    input, output
        Streams.
    level
        Entries held.
    """

    def __init__(self, shape: ShapeLike, depth: int, *, always_ready: bool = False) -> None:
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        self._depth = depth
        self._always_ready = always_ready
        super().__init__(
            {
                "input": In(stream.Signature(shape, always_ready=always_ready)),
                "output": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    @property
    def depth(self) -> int:
        """Entries that the FIFO holds."""
        return self._depth

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape = Shape.cast(self.input.p.shape())
        m.submodules.storage = storage = Memory(shape=shape, depth=self.depth, init=[])
        write, read = storage.write_port(), storage.read_port(domain="comb")
        # Both flags are registers, because pushes and pops are known late in a cycle.
        is_full: Value = Const(0, 1) if self._always_ready else Signal(name="is_full")
        has_payload = Signal()
        pushes, pops = Signal(), Signal()
        produce, consume = (Signal.like(port.addr, name=name) for port, name in ((write, "produce"), (read, "consume")))

        def following(place: Value) -> Value:
            return Mux(place == self.depth - 1, 0, place + 1)[: len(place)]

        m.d.comb += [
            pushes.eq(self.input.valid & ~is_full),
            pops.eq(has_payload & self.output.ready),
            self.output.valid.eq(has_payload),
            *(write.addr.eq(produce), write.data.eq(Value.cast(self.input.payload)), write.en.eq(pushes)),
            *(read.addr.eq(consume), Value.cast(self.output.payload).eq(read.data)),
        ]
        m.d.sync += [
            self.level.eq(up_down(self.level, pushes, pops)),
            has_payload.eq(pushes | (has_payload & ~(pops & (following(consume) == produce)))),
        ]
        if not self._always_ready:
            m.d.comb += self.input.ready.eq(~is_full)
            m.d.sync += is_full.eq(~pops & (is_full | (pushes & (following(produce) == consume))))
        for place, moves in ((produce, pushes), (consume, pops)):
            with m.If(moves):
                m.d.sync += place.eq(following(place))
        return m
