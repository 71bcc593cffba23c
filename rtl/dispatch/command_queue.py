"""Command queue: a chain of registers for the commands of a unit, or for parts of them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CommandQueue"]

_BLOCK = 4
"""Largest number of registers that a command passes before it is counted."""


class CommandQueue(wiring.Component):
    """A FIFO in registers, without logic between them.

    A register that holds no command copies the one above it; the highest one copies ``command``. So a command has
    reached its place by the time it is counted there, and a push only counts it. In a deeper queue, every fourth
    register copies ``command`` as well, unless the one above it holds a command.

    Parameters
    ----------
    shape
        Shape of a command.
    depth
        Capacity in commands, a power of two.

    Members
    -------
    command
        The command to push; stable from two cycles before ``push`` until the cycle after it.
    push
        Keep the command; not while the queue holds ``depth`` of them, and not within four cycles of another ``push``.
    oldest
        The oldest command, from two cycles after its ``push`` on.
    take
        Remove the oldest command.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self._depth = depth
        super().__init__({"command": In(shape), "push": In(1), "oldest": Out(shape), "take": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = Value.cast(self.command)
        places = [Signal(len(command), name=f"place_{index}", reset_less=True) for index in range(self._depth)]
        # Thermometer code of the number of commands held.
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
