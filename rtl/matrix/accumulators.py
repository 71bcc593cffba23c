"""Accumulators: int32 sums in per-column block RAM, addressed with the skew of the array."""

from functools import reduce
from operator import or_

import numpy as np
from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.fpga.carry_chain import chained_sum
from openmxu.rtl.fpga.target import Target

__all__ = ["AccumulatorColumn", "Accumulators", "read_latency", "tag_layout"]


def tag_layout(config: Config) -> data.StructLayout:
    """The update of one row of sums: shifted left by ``shift`` bytes (0 to 2), then added to or written over ``row``.

    ``last`` marks the last row of an instruction.
    """
    return data.StructLayout(
        {"valid": 1, "row": config.accumulator_address_width, "accumulate": 1, "shift": 2, "last": 1}
    )


def read_latency(config: Config) -> int:
    """Cycles from the grant of a row to the activation unit until its first values."""
    return 2 + (config.column_groups == 1)


class AccumulatorColumn(wiring.Component):
    """One column: even and odd rows in two banks, each with one read and one write port.

    A read-modify-write takes three cycles: read in cycle t, shift the partial sum in t + 1, add in t + 2, write in
    t + 3. Read data goes straight into registers, which on many FPGAs are those of the block RAM.
    The banks let the activation unit read an odd row while the matrix unit reads an even one. No row is read while it
    is being written: the matrix sequencer keeps such rows apart, and the scoreboard such instructions.

    Members
    -------
    read_places
        Read address of each bank: the row's number without its lowest bit.
    partial_sum, shift_one
        One cycle after the address: the partial sum, and whether to shift it left by a byte.
    shift_two, accumulate, is_odd
        Two cycles after the address: shift by two bytes; add to the row rather than overwrite it; the row is in the
        odd bank.
    write, write_row
        Three cycles after the address: write the updated row.
    read_data
        Data of each bank, two cycles after the address.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        row = config.accumulator_address_width
        super().__init__(
            {
                "read_places": In(data.ArrayLayout(row - 1, 2)),
                "partial_sum": In(signed(config.partial_sum_width)),
                "shift_one": In(1),
                "shift_two": In(1),
                "accumulate": In(1),
                "is_odd": In(1),
                "write": In(1),
                "write_row": In(row),
                "read_data": Out(data.ArrayLayout(signed(32), 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sum_ = Signal(signed(32), reset_less=True)
        for parity, name in enumerate(("even", "odd")):
            memory = Memory(shape=signed(32), depth=self._config.accumulator_rows // 2, init=[])
            m.submodules[name] = memory
            read_port = memory.read_port()
            write_port = memory.write_port()
            read = Signal(signed(32), name=f"read_{name}", reset_less=True)
            m.d.sync += read.eq(read_port.data)
            m.d.comb += [
                read_port.addr.eq(self.read_places[parity]),
                read_port.en.eq(1),
                write_port.addr.eq(self.write_row[1:]),
                write_port.data.eq(sum_),
                write_port.en.eq(self.write & (self.write_row[0] == parity)),
                self.read_data[parity].eq(read),
            ]

        # Half of the shift has a separate register stage, because the array's last adder leaves no time for more; the
        # other half is part of the adder.
        shifted = Signal(signed(self._config.partial_sum_width + 8), reset_less=True)
        m.d.sync += shifted.eq(Mux(self.shift_one, self.partial_sum << 8, self.partial_sum))
        old, near, far = Signal(32), Signal(signed(32)), Signal(32)
        m.d.comb += [
            old.eq(Mux(self.accumulate, Mux(self.is_odd, self.read_data[1], self.read_data[0]), 0)),
            near.eq(shifted),
            far.eq(shifted << 16),
        ]
        total = chained_sum(
            m,
            platform,
            "total",
            [old, far, near.as_unsigned(), self.shift_two],
            first=lambda old, far, near, shift: old,
            second=lambda old, far, near, shift: (far & shift) | (near & ~shift),
        )
        m.d.sync += sum_.eq(total)
        return m


class Accumulators(wiring.Component):
    """S columns of int32 sums.

    Column n works n cycles behind column 0, like the array's sums. The activation unit reads columns too: its lane l
    owns the S/L columns from l·S/L on and reads one of them per cycle, in step with the skew of the array, so that its
    reads and those of a matrix instruction keep their distance. A read stalls only at a row's start, while a
    read-modify-write needs the same bank: at most every other cycle under a stream of consecutive rows.

    Members
    -------
    tag
        Tag of the row whose column 0 comes ``tag_lead`` cycles later.
    partial_sums
        Sums from the array, skewed by column.
    done
        Set for one cycle at the end of an instruction: from ``read_delay`` cycles later on its rows may be read.
    busy
        Sums are still being written.
    read
        Rows that the activation unit requests.
    values
        L int32 values in each of S/L cycles, the first ``read_latency(config)`` cycles after the row was taken; value
        l of cycle j is column l·S/L + j.
    """

    update_latency = 4
    """Cycles until a row that is read for an update may be read again."""

    tag_lead = 2
    """Cycles from a tag to column 0 of its sums."""

    read_delay = 10
    """As many cycles pass at least until the activation unit, which is told of the end, reads a row."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "tag": In(tag_layout(config)),
                "partial_sums": In(data.ArrayLayout(signed(config.partial_sum_width), config.size)),
                "done": Out(1),
                "busy": Out(1),
                "read": In(stream.Signature(config.accumulator_address_width)),
                "values": Out(data.ArrayLayout(signed(32), config.activation_lanes)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @classmethod
    def done_latency(cls, config: Config) -> int:
        """Cycles from the last tag of an instruction to ``done``."""
        # Column n is written n + 4 cycles after the tag, and can be read a cycle later. A row is read from column 0 of
        # each lane on, with one column per lane from every other column on.
        soonest_read = config.size - max(2, config.column_groups) + 5
        return max(1, soonest_read - cls.read_delay)

    @staticmethod
    def compute(old: NDArray[np.int32], sums: NDArray[np.int64], accumulate: bool, shift: int = 0) -> NDArray[np.int32]:
        """The updated rows: ``old + (sums << 8 * shift)``, wrapped to 32 bits, or the shifted sums alone."""
        shifted = (np.asarray(sums, np.int64) << 8 * shift).astype(np.int32)
        return np.asarray(old, np.int32) + shifted if accumulate else shifted

    def elaborate(self, platform: object) -> Module:
        m = Module()
        target = Target.of(platform)
        size, lanes, groups = self.config.size, self.config.activation_lanes, self.config.column_groups

        # tags[n] is the tag of the row that column n reads in this cycle, and `coming` that of the next cycle.
        coming = self.tag
        tags: list[Signal] = []
        for index in range(size + 3):
            tag = Signal(tag_layout(self.config), name=f"tag_{index}")
            m.d.sync += tag.eq(tags[-1] if tags else coming)
            tags.append(tag)
        ended = tags[self.done_latency(self.config) - 1]
        m.d.comb += [self.done.eq(ended.valid & ended.last), self.busy.eq(Cat(tag.valid for tag in tags).any())]

        columns = [AccumulatorColumn(self.config) for _ in range(size)]
        for index, column in enumerate(columns):
            m.submodules[f"column_{index}"] = target.shared(column)
            m.d.comb += [
                column.partial_sum.eq(self.partial_sums[index]),
                column.shift_one.eq(tags[index + 1].shift[0]),
                column.shift_two.eq(tags[index + 2].shift[1]),
                column.accumulate.eq(tags[index + 2].accumulate),
                column.is_odd.eq(tags[index + 2].row[0]),
                column.write.eq(tags[index + 3].valid),
                column.write_row.eq(tags[index + 3].row),
            ]

        # Lane l reads column l·groups + j in the j-th cycle after a row is taken. The tag that then is at this column
        # is now at column l·groups, for all j: one comparison now decides for the whole row. With one column per lane,
        # odd lanes read a cycle later, so that all compare with even columns.
        # The comparison is made a cycle ahead, for rows of either bank.
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
        m.d.comb += [
            self.read.ready.eq(~running & ~updates.bit_select(self.read.payload[0], 1)),
            started.eq(self.read.valid & self.read.ready),
        ]

        # The read addresses of updates and of the activation unit both move by a column per cycle: only the first of
        # neighbouring columns selects between them, by a register, because the address leads to block RAM.
        for index, column in enumerate(columns):
            for parity, place in enumerate(column.read_places):
                if index % max(2, groups):
                    before = columns[index - 1].read_places[parity]
                    m.d.comb += place.eq(delayed(m, before, 1, f"read_place_{index}_{parity}"))
                else:
                    tag = tags[index - 1] if index else coming
                    updates_here = Signal(name=f"updates_{index}_{parity}")
                    m.d.sync += updates_here.eq(tag.valid & tag.accumulate & (tag.row[0] == parity))
                    m.d.comb += place.eq(Mux(updates_here, tags[index].row[1:], self.read.payload[1:]))

        if groups == 1:
            is_odd = delayed(m, self.read.payload[0], 2, "is_odd")
            later_is_odd = delayed(m, is_odd, 1, "later_is_odd")
            for lane, column in enumerate(columns):
                value = self.values[lane]
                if lane % 2:
                    m.d.comb += value.eq(Array(column.read_data)[later_is_odd])
                else:
                    m.d.sync += value.eq(Array(column.read_data)[is_odd])
            return m

        row_is_odd = Signal(reset_less=True)
        with m.If(started):
            m.d.sync += [running.eq(1), step.eq(1), row_is_odd.eq(self.read.payload[0])]
        with m.Elif(running):
            m.d.sync += step.eq(step + 1)
            with m.If(step == groups - 1):
                m.d.sync += [running.eq(0), step.eq(0)]

        is_odd = Mux(running, row_is_odd, self.read.payload[0])
        selection = delayed(m, Cat(is_odd, step), 1, "selection")
        for lane in range(lanes):
            own = columns[lane * groups : (lane + 1) * groups]
            # A register for each lane, which synthesis would merge into one: columns are far apart on the chip.
            selected = Signal.like(selection, name=f"selected_{lane}", reset_less=True, attrs={"keep": 1})
            m.d.sync += selected.eq(selection)
            m.d.comb += self.values[lane].eq(Array(read for column in own for read in column.read_data)[selected])
        return m
