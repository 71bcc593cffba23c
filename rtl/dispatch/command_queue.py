"""Command queue: commands are stored before it is known whether they come."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2

__all__ = ["CommandQueue"]


class CommandQueue(wiring.Component):
    """First in, first out, in distributed RAM.

    Whether an instruction may go on is known late in a cycle, and a command is wide. So what may become one is written
    to the free place all the time; pushing it does no more than count.

    Parameters
    ----------
    shape
        Of a command.
    depth
        Entries, a power of two.

    Members
    -------
    command
        What may be pushed.
    push
        Keep the command; not while the queue holds ``depth`` of them.
    output
        Commands; one leaves in the cycle after it was pushed, at the earliest.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self._depth = depth
        super().__init__({"command": In(shape), "push": In(1), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = Value.cast(self.command)
        m.submodules.storage = storage = Memory(shape=len(command), depth=self._depth, init=[])
        write, read = storage.write_port(), storage.read_port(domain="comb")
        # One bit more than an index, to tell a full queue from an empty one.
        newest, oldest = Signal(ceil_log2(self._depth) + 1), Signal(ceil_log2(self._depth) + 1)
        takes = Signal()
        m.d.comb += [
            takes.eq(self.output.valid & self.output.ready),
            write.addr.eq(newest),
            write.data.eq(command),
            # Where all places are taken, the next one is the oldest command's.
            write.en.eq((newest ^ oldest) != self._depth),
            read.addr.eq(oldest),
            Value.cast(self.output.payload).eq(read.data),
            self.output.valid.eq(newest != oldest),
        ]
        m.d.sync += [newest.eq(newest + self.push), oldest.eq(oldest + takes)]
        return m
