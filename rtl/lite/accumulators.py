"""Accumulators of the lite profile: int32 sums in block RAM, in few logic cells."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.matrix.accumulators import tag_layout

__all__ = ["LiteAccumulators"]


class LiteAccumulators(wiring.Component):
    """S columns of int32 sums, each in a memory with one read and one write port.

    A row is read in one cycle and written in the next one, without a register between: what is slow here is small.
    One instruction works at a time, so that nobody looks at rows while they are added to, and no row is read while it
    is being written.

    Members
    -------
    tag
        For the row whose sums come ``tag_lead`` cycles later. Whether it accumulates, it tells until the end of its
        instruction; it does not shift.
    sums
        Of the array.
    done
        Set for one cycle when the last row of an instruction is written.
    row
        The one that is looked at, while no instruction is at work.
    columns
        Its sums, from the next cycle on.
    """

    tag_lead = 1
    """Cycles from a tag to its sums."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "tag": In(tag_layout(config)),
                "sums": In(data.ArrayLayout(signed(config.partial_sum_width), config.size)),
                "done": Out(1),
                "row": In(config.accumulator_address_width),
                "columns": Out(data.ArrayLayout(signed(32), config.size)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = Signal.like(self.row)
        written = Signal.like(self.row, reset_less=True)
        valid, last = Signal(), Signal(reset_less=True)
        m.d.comb += [row.eq(Mux(self.tag.valid, self.tag.row, self.row)), self.done.eq(valid & last)]
        m.d.sync += [written.eq(row), valid.eq(self.tag.valid), last.eq(self.tag.last)]
        for column in range(self.config.size):
            memory = Memory(shape=signed(32), depth=self.config.accumulator_rows, init=[])
            m.submodules[f"column_{column}"] = memory
            read, write = memory.read_port(), memory.write_port()
            m.d.comb += [
                read.addr.eq(row),
                read.en.eq(1),
                self.columns[column].eq(read.data),
                write.addr.eq(written),
                write.en.eq(valid),
                write.data.eq(Mux(self.tag.accumulate, read.data + self.sums[column], self.sums[column])),
            ]
        return m
