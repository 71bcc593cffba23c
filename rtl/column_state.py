"""Column state: a value that a lane keeps for each of its columns."""

from amaranth.hdl import Module, Shape, ShapeLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["ColumnState"]


class ColumnState(wiring.Component):
    """A value for each of ``groups`` columns, read and replaced within one cycle; distributed RAM.

    Read and write are of the same column: the value read is the one from before the write.

    Members
    -------
    group
        The column.
    value
        What is kept for it, in the same cycle.
    enable, next_value
        Replace it at the end of the cycle.
    """

    def __init__(self, shape: ShapeLike, groups: int) -> None:
        self._shape = Shape.cast(shape)
        self._groups = groups
        super().__init__(
            {
                "group": In(range(groups)),
                "value": Out(self._shape),
                "enable": In(1),
                "next_value": In(self._shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=self._shape, depth=self._groups, init=[])
        read = memory.read_port(domain="comb")
        write = memory.write_port()
        m.d.comb += [
            read.addr.eq(self.group),
            self.value.eq(read.data),
            write.addr.eq(self.group),
            write.data.eq(self.next_value),
            write.en.eq(self.enable),
        ]
        return m
