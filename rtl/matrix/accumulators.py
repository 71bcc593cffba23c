"""Accumulators: int32 sums in per-column block RAM, addressed with the skew of the array."""

from functools import reduce
from operator import or_

import numpy as np
from amaranth.hdl import Array, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.rtl.common.delayed import delayed

__all__ = ["AccumulatorColumn", "Accumulators", "read_latency", "tag_layout"]


def tag_layout(config: Config) -> data.StructLayout:
    """What happens to one row of sums: shifted left by ``shift`` bytes (0 to 2), then added to or written over ``row``.

    ``last`` of its instruction.
    """
    return data.StructLayout(
        {"valid": 1, "row": config.accumulator_address_width, "accumulate": 1, "shift": 2, "last": 1}
    )


def read_latency(config: Config) -> int:
    """Cycles from a row that the activation unit is granted to its first values."""
    return 2 + (config.column_groups == 1)


class AccumulatorColumn(wiring.Component):
    """One column: even and odd rows in two banks, each with one read and one write port.

    A read-modify-write takes three cycles: read in cycle t, shift what comes in t + 1, add in t + 2, write in t + 3.
    What is read goes straight into registers, which on many FPGAs are those of the block RAM.
    The banks let the activation unit read an odd row while the matrix unit reads an even one. No row is read while it
    is being written: the matrix sequencer keeps such rows apart, and the dispatcher such instructions.

    Members
    -------
    update, update_row
        Read for a read-modify-write.
    partial_sum, shift
        One cycle after ``update_row``: what to add or to write, and by how many bytes to shift it left before.
    accumulate
        Two cycles after ``update_row``: the row becomes the shifted sum plus what it was, rather than the sum alone.
    write, write_row
        Three cycles after ``update_row``: write what it becomes.
    read_row, read_data
        For the activation unit: a row, two cycles after its number, unless an update needed its bank.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        row = config.accumulator_address_width
        super().__init__(
            {
                "update": In(1),
                "update_row": In(row),
                "partial_sum": In(signed(config.partial_sum_width)),
                "shift": In(2),
                "accumulate": In(1),
                "write": In(1),
                "write_row": In(row),
                "read_row": In(row),
                "read_data": Out(signed(32)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reads = []
        sum_ = Signal(signed(32), reset_less=True)
        for parity, name in enumerate(("even", "odd")):
            memory = Memory(shape=signed(32), depth=self._config.accumulator_rows // 2, init=[])
            m.submodules[name] = memory
            read_port = memory.read_port()
            write_port = memory.write_port()
            updates_here = Signal(name=f"updates_{name}")
            m.d.comb += [
                updates_here.eq(self.update & (self.update_row[0] == parity)),
                read_port.addr.eq(Mux(updates_here, self.update_row[1:], self.read_row[1:])),
                read_port.en.eq(1),
                write_port.addr.eq(self.write_row[1:]),
                write_port.data.eq(sum_),
                write_port.en.eq(self.write & (self.write_row[0] == parity)),
            ]
            read = Signal(signed(32), name=f"read_{name}", reset_less=True)
            m.d.sync += read.eq(read_port.data)
            reads.append(read)

        old = Signal(signed(32))
        # A register of its own, because the array's last adder and the adder below leave no time to shift.
        shifted = Signal(signed(32), reset_less=True)
        m.d.sync += shifted.eq(
            Mux(self.shift[1], self.partial_sum << 16, Mux(self.shift[0], self.partial_sum << 8, self.partial_sum))
        )
        update_is_odd = delayed(m, self.update_row[0], 2, "update_is_odd")
        read_is_odd = delayed(m, self.read_row[0], 2, "read_is_odd")
        m.d.comb += [
            old.eq(Mux(update_is_odd, reads[1], reads[0])),
            self.read_data.eq(Mux(read_is_odd, reads[1], reads[0])),
        ]
        m.d.sync += sum_.eq(shifted + Mux(self.accumulate, old, 0))
        return m


class Accumulators(wiring.Component):
    """S columns of int32 sums.

    Column n works n cycles behind column 0, as the array's sums come. The activation unit reads columns too: its lane l
    owns the S/L columns from l·S/L on and reads one of them per cycle, in step with the skew of the array, so that its
    reads and those of a matrix instruction keep their distance. Reading is held up only at a row's start, while a
    read-modify-write would need the same bank: at most every other cycle under a stream of consecutive rows.

    Members
    -------
    tag
        For the row whose column 0 comes ``tag_lead`` cycles later.
    partial_sums
        Of the array, skewed by column.
    done
        Set for one cycle when the last row of an instruction has been written in all columns.
    read
        Rows that the activation unit asks for.
    values
        L int32 values in each of S/L cycles, the first ``read_latency(config)`` cycles after the row was taken; value
        l of cycle j is column l·S/L + j.
    """

    update_latency = 4
    """Cycles until a row that is read for an update may be read again."""

    tag_lead = 2
    """Cycles from a tag to column 0 of its sums."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "tag": In(tag_layout(config)),
                "partial_sums": In(data.ArrayLayout(signed(config.partial_sum_width), config.size)),
                "done": Out(1),
                "read": In(stream.Signature(config.accumulator_address_width)),
                "values": Out(data.ArrayLayout(signed(32), config.activation_lanes)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @staticmethod
    def compute(old: NDArray[np.int32], sums: NDArray[np.int64], accumulate: bool, shift: int = 0) -> NDArray[np.int32]:
        """What becomes of rows ``old``: ``old + (sums << 8 * shift)``, wrapped to 32 bits, or the sums alone."""
        sums = (np.asarray(sums, np.int64) << 8 * shift).astype(np.int32)
        return np.asarray(old, np.int32) + sums if accumulate else sums

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, lanes, groups = self.config.size, self.config.activation_lanes, self.config.column_groups

        # tags[n] is the tag of the row that column n reads in this cycle, and `coming` that of the next cycle.
        coming = self.tag
        tags = []
        for index in range(size + 3):
            tag = Signal(tag_layout(self.config), name=f"tag_{index}")
            m.d.sync += tag.eq(tags[-1] if tags else coming)
            tags.append(tag)
        m.d.comb += self.done.eq(tags[size + 2].valid & tags[size + 2].last)

        columns = [AccumulatorColumn(self.config) for _ in range(size)]
        for index, column in enumerate(columns):
            m.submodules[f"column_{index}"] = column
            m.d.comb += [
                column.update.eq(tags[index].valid & tags[index].accumulate),
                column.update_row.eq(tags[index].row),
                column.partial_sum.eq(self.partial_sums[index]),
                column.shift.eq(tags[index + 1].shift),
                column.accumulate.eq(tags[index + 2].accumulate),
                column.write.eq(tags[index + 3].valid),
                column.write_row.eq(tags[index + 3].row),
            ]

        # Lane l reads column l·groups + j in the j-th cycle after a row is taken. The tag that then is at this column
        # is now at column l·groups, for all j: one look now tells for the whole row. With one column per lane, odd
        # lanes read a cycle later, so that all look at even columns.
        # It is taken a cycle ahead, for rows of either bank.
        updates = Signal(2)
        looks = []
        for lane in range(lanes):
            index = lane * groups - (lane % 2 if groups == 1 else 0)
            tag = tags[index - 1] if index else coming
            looks.append(Mux(tag.valid & tag.accumulate, Mux(tag.row[0], 0b10, 0b01), 0))
        m.d.sync += updates.eq(reduce(or_, looks))
        started = Signal()
        step = Signal(range(max(2, groups)))
        running = Signal()
        row = Signal(self.config.accumulator_address_width, reset_less=True)
        m.d.comb += [
            self.read.ready.eq(~running & ~updates.bit_select(self.read.payload[0], 1)),
            started.eq(self.read.valid & self.read.ready),
        ]
        with m.If(started):
            m.d.sync += row.eq(self.read.payload)

        if groups == 1:
            for lane, column in enumerate(columns):
                value = self.values[lane]
                if lane % 2:
                    m.d.comb += [column.read_row.eq(row), value.eq(column.read_data)]
                else:
                    m.d.comb += column.read_row.eq(self.read.payload)
                    m.d.sync += value.eq(column.read_data)
            return m

        current = Signal.like(row)
        m.d.comb += current.eq(Mux(running, row, self.read.payload))
        with m.If(started):
            m.d.sync += [running.eq(1), step.eq(1)]
        with m.Elif(running):
            m.d.sync += step.eq(step + 1)
            with m.If(step == groups - 1):
                m.d.sync += [running.eq(0), step.eq(0)]

        selected = delayed(m, step, 2, "step")
        for lane in range(lanes):
            own = columns[lane * groups : (lane + 1) * groups]
            m.d.comb += [column.read_row.eq(current) for column in own]
            m.d.comb += self.values[lane].eq(Array(column.read_data for column in own)[selected])
        return m
