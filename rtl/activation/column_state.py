"""Column state: a value that a lane keeps for each of its columns."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["ColumnState"]


class ColumnState(wiring.Component):
    """A value for each of ``groups`` columns, which come in turn; distributed RAM, or a register for one column.

    What is kept goes through a register, so that a whole cycle is left to make the next value of it. Where more than
    two columns come in turn, the next value goes through one as well before it is written.

    Members
    -------
    group
        The column that comes in the next cycle.
    value
        What is kept for the column that comes now.
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
        kept = Signal(self._shape, reset_less=True)
        m.d.comb += self.value.eq(kept)
        if self._groups == 1:
            with m.If(self.enable):
                m.d.sync += kept.eq(self.next_value)
            return m

        m.submodules.memory = memory = Memory(shape=self._shape, depth=self._groups, init=[])
        # The register is not the memory's own, which would make it block RAM.
        read = memory.read_port(domain="comb")
        write = memory.write_port()
        current = Signal.like(self.group, reset_less=True)
        replaced = Signal.like(self.group, reset_less=True)
        next_value = Signal.like(self.next_value, reset_less=True)
        enable = Signal()
        later = m.d.comb if self._groups == 2 else m.d.sync
        m.d.comb += [
            read.addr.eq(self.group),
            write.addr.eq(replaced),
            write.data.eq(next_value),
            write.en.eq(enable),
        ]
        later += [replaced.eq(current), next_value.eq(self.next_value), enable.eq(self.enable)]
        m.d.sync += [current.eq(self.group), kept.eq(read.data)]
        return m
