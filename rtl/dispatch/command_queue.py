"""Command queue: registers in a row, through which commands come to their unit, or parts of them to its parts."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CommandQueue"]

_BLOCK = 4
"""Registers that a command may have to pass until it is counted."""


class CommandQueue(wiring.Component):
    """First in, first out, in registers without logic between them.

    Registers that hold no command copy the one above them, and the highest one ``command``. So a command has come to
    its place by the time it is counted there, and pushing it does no more than count. Of a deeper queue, every fourth
    register copies ``command`` as well, unless the one above it holds a command.

    Parameters
    ----------
    shape
        Of a command.
    depth
        Commands that it holds, a power of two.

    Members
    -------
    command
        What may be pushed: the same from two cycles before ``push`` until the cycle behind it.
    push
        Keep the command; not while the queue holds ``depth`` of them, and not within four cycles of another one.
    oldest
        The oldest command, from two cycles after its ``push`` on.
    take
        The oldest command leaves.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self._depth = depth
        super().__init__({"command": In(shape), "push": In(1), "oldest": Out(shape), "take": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = Value.cast(self.command)
        places = [Signal(len(command), name=f"place_{index}", reset_less=True) for index in range(self._depth)]
        # One bit for each command that is held, from the lowest one on.
        held = Signal(self._depth)
        pushed = Signal()
        m.d.comb += Value.cast(self.oldest).eq(places[0])
        m.d.sync += pushed.eq(self.push)
        with m.If(pushed != self.take):
            m.d.sync += held.eq(Mux(pushed, Cat(1, held), held[1:]))
        for index, place in enumerate(places):
            above = command if index == self._depth - 1 else places[index + 1]
            if index % _BLOCK == _BLOCK - 1 and index < self._depth - 1:
                above = Mux(held[index + 1], above, command)
            with m.If(self.take | ~held[index]):
                m.d.sync += place.eq(above)
        return m
