"""A small FIFO with stream interfaces and a shaped payload."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.common.tally import tally

__all__ = ["StreamFIFO"]


class StreamFIFO(wiring.Component):
    """First in, first out; a payload leaves in the cycle after it came, at the earliest.

    Storage is read asynchronously: distributed RAM or registers, for queues of a few entries. ``input.ready`` and
    ``output.valid`` come out of registers: much follows from them in the units around.

    Parameters
    ----------
    shape
        Of the payload.
    depth
        Entries, at least 1.

    Members
    -------
    input, output
        Streams.
    level
        Entries held.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        self._depth = depth
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
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
        # One bit for each payload that is held, from the lowest one on: it costs less than a count that is compared.
        occupied = Signal(self.depth)
        pushes, pops = Signal(), Signal()
        m.d.comb += [
            pushes.eq(self.input.valid & self.input.ready),
            pops.eq(self.output.valid & self.output.ready),
            self.input.ready.eq(~occupied[-1]),
            self.output.valid.eq(occupied[0]),
            write.data.eq(Value.cast(self.input.payload)),
            write.en.eq(pushes),
            Value.cast(self.output.payload).eq(read.data),
        ]
        m.d.sync += self.level.eq(tally(self.level, pushes, pops))
        with m.If(pushes != pops):
            m.d.sync += occupied.eq(Mux(pushes, Cat(1, occupied), occupied[1:]))
        for port, moves in ((write, pushes), (read, pops)):
            place = Signal.like(port.addr, name="produce" if port is write else "consume")
            m.d.comb += port.addr.eq(place)
            with m.If(moves):
                m.d.sync += place.eq(Mux(place == self.depth - 1, 0, place + 1))
        return m
