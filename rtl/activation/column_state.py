"""Column state: a value that a lane keeps for each of its columns."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["ColumnState"]

_MOST_REGISTERS = 4
"""Columns up to which registers alone cost no more than distributed RAM and its registers."""


class ColumnState(wiring.Component):
    """A value for each of ``groups`` columns, in turn: a shift register, in distributed RAM if it is long.

    Members
    -------
    enable, next_value
        Update the column whose turn it is, and its new value.
    newest
        The value stored last.
    value
        The value of the column whose turn is next.
    coming
        The value that ``enable`` moves to ``value``.
    """

    def __init__(self, shape: ShapeLike, groups: int) -> None:
        self._shape = Shape.cast(shape)
        self._groups = groups
        super().__init__(
            {
                "enable": In(1),
                "next_value": In(self._shape),
                "newest": Out(self._shape),
                "value": Out(self._shape),
                "coming": Out(self._shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._groups > _MOST_REGISTERS:
            self._use_memory(m)
            return m
        stages = [self.next_value]
        for index in range(self._groups):
            stage = Signal(self._shape, name=f"stage_{index}", reset_less=True)
            with m.If(self.enable):
                m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        m.d.comb += [self.newest.eq(stages[1]), self.coming.eq(stages[-2]), self.value.eq(stages[-1])]
        return m

    def _use_memory(self, m: Module) -> None:
        """Replace all registers but the first and the last one with a memory."""
        newest, oldest = (Signal(self._shape, name=name, reset_less=True) for name in ("newest", "oldest"))
        m.submodules.memory = memory = Memory(shape=self._shape, depth=self._groups, init=[])
        read, write = memory.read_port(domain="comb"), memory.write_port()
        place = Signal(range(self._groups))
        m.d.comb += [
            # The two registers are two of the stages, so the memory delays by two turns less than its depth.
            read.addr.eq(place + 2),
            write.addr.eq(place),
            write.data.eq(newest),
            write.en.eq(self.enable),
            *(self.newest.eq(newest), self.coming.eq(read.data), self.value.eq(oldest)),
        ]
        with m.If(self.enable):
            m.d.sync += [place.eq(place + 1), newest.eq(self.next_value), oldest.eq(read.data)]
