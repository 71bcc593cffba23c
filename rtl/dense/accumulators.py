"""Accumulators of the dense profile: int32 sums in block RAM, in few logic cells."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.accumulators import tag_layout

__all__ = ["DenseAccumulators"]


class DenseAccumulators(wiring.Component):
    """S columns of int32 sums, each in a memory with one read and one write port.

    A row is read in one cycle and written in the next one, without a register between: what is slow here is small.
    Rows travel from column to column, as the array's sums do. One instruction works at a time, so that nobody looks at
    rows while they are added to, and no row is read while it is being written.

    Members
    -------
    tag
        For the row whose column 0 comes ``tag_lead`` cycles later. Whether it accumulates, it tells until the end of
        its instruction; it does not shift.
    partial_sums
        Of the array, skewed by column.
    done
        Set for one cycle when the last row of an instruction has been written in all columns.
    row
        The one that is looked at, while no instruction is at work.
    columns
        Its sums: column n from n + 1 cycles later on.
    """

    tag_lead = 1
    """Cycles from a tag to column 0 of its sums."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "tag": In(tag_layout(config)),
                "partial_sums": In(data.ArrayLayout(signed(config.partial_sum_width), config.size)),
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
        m.d.comb += row.eq(Mux(self.tag.valid, self.tag.row, self.row))
        valid, last = self.tag.valid, self.tag.last
        for column in range(self.config.size):
            memory = Memory(shape=signed(32), depth=self.config.accumulator_rows, init=[])
            m.submodules[f"column_{column}"] = memory
            read, write = memory.read_port(), memory.write_port()
            partial_sum = self.partial_sums[column]
            m.d.comb += [read.addr.eq(row), read.en.eq(1), self.columns[column].eq(read.data)]

            next_row = Signal.like(row, name=f"row_{column}", reset_less=True)
            next_valid, next_last = Signal(name=f"valid_{column}"), Signal(name=f"last_{column}")
            m.d.sync += [next_row.eq(row), next_valid.eq(valid), next_last.eq(last)]
            row, valid, last = next_row, next_valid, next_last
            m.d.comb += [
                write.addr.eq(row),
                write.en.eq(valid),
                write.data.eq(Mux(self.tag.accumulate, read.data + partial_sum, partial_sum)),
            ]
        m.d.comb += self.done.eq(valid & last)
        return m
