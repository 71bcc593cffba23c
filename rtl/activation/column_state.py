"""Column state: a value that a lane keeps for each of its columns."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["ColumnState"]

_MOST_REGISTERS = 4
"""Columns up to which registers, which need no logic, are no more than distributed RAM and its registers."""


class ColumnState(wiring.Component):
    """A value for each of ``groups`` columns, which come in turn: a shift register, of distributed RAM if it is long.

    Members
    -------
    enable, next_value
        A column comes, and what is kept for it from now on.
    newest
        The last one of these.
    value
        What is kept for the column that comes next.
    coming
        What ``value`` becomes when a column comes.
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
        """A memory for all registers but the first and the last one."""
        newest, oldest = (Signal(self._shape, name=name, reset_less=True) for name in ("newest", "oldest"))
        m.submodules.memory = memory = Memory(shape=self._shape, depth=self._groups, init=[])
        read, write = memory.read_port(domain="comb"), memory.write_port()
        place = Signal(range(self._groups))
        m.d.comb += [
            # Two of the turns until `place` is the same again are those of the two registers.
            read.addr.eq(place + 2),
            write.addr.eq(place),
            write.data.eq(newest),
            write.en.eq(self.enable),
            *(self.newest.eq(newest), self.coming.eq(read.data), self.value.eq(oldest)),
        ]
        with m.If(self.enable):
            m.d.sync += [place.eq(place + 1), newest.eq(self.next_value), oldest.eq(read.data)]
