"""Matrix sequencer: MatrixMultiply instructions become rows for the array and tags for the accumulators."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.accumulators import Accumulators, tag_layout
from openmxu.rtl.commands import matrix_command
from openmxu.rtl.row_walker import RowWalker
from openmxu.rtl.systolic_data_setup import OperandFormat
from openmxu.rtl.unified_buffer import UnifiedBuffer

__all__ = ["MatrixSequencer"]


class MatrixSequencer(wiring.Component):
    """Requests one unified buffer row per cycle, instruction after instruction without a gap.

    A row waits while the tile that its instruction takes is not ready, and while the accumulator row that it adds to is
    still being written by one of the rows just before it.

    Members
    -------
    commands
        Taken when their first row comes next.
    request
        Row addresses for the unified buffer.
    tile_ready, take
        From and to the weight shifter.
    format
        Of the row requested ``UnifiedBuffer.read_latency`` cycles ago.
    swap
        Set with that row if it swaps.
    tag
        What the accumulators do with the row requested in this cycle, valid in the cycle of the request.
    waits_for_tile
        An instruction is held up by its tile only.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(matrix_command(config))),
                "request": Out(stream.Signature(config.unified_buffer_address_width)),
                "tile_ready": In(1),
                "take": Out(1),
                "format": Out(OperandFormat),
                "swap": Out(1),
                "tag": Out(tag_layout(config)),
                "waits_for_tile": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.commands.p
        m.submodules.rows = rows = RowWalker(self.config.unified_buffer_address_width, command.rows.shape())

        # What the rows of the current instruction have in common, beside the walker's registers.
        accumulator = Signal(self.config.accumulator_address_width, reset_less=True)
        accumulate = Signal(reset_less=True)
        needs_tile = Signal()
        format = Signal(OperandFormat, reset_less=True)
        pending = Signal()
        granted = Signal()
        m.d.comb += [
            rows.ranges.p.address.eq(command.unified_buffer),
            rows.ranges.p.rows.eq(command.rows),
            rows.ranges.valid.eq(self.commands.valid),
            self.commands.ready.eq(rows.ranges.ready),
            self.request.payload.eq(rows.rows.p.address),
            self.request.valid.eq(rows.rows.valid & (~needs_tile | self.tile_ready) & ~pending),
            granted.eq(self.request.valid & self.request.ready),
            rows.rows.ready.eq(self.request.ready & (~needs_tile | self.tile_ready) & ~pending),
            self.take.eq(granted & needs_tile),
            self.waits_for_tile.eq(rows.rows.valid & needs_tile & ~self.tile_ready),
            self.tag.valid.eq(granted),
            self.tag.row.eq(accumulator),
            self.tag.accumulate.eq(accumulate),
            self.tag.last.eq(rows.rows.p.last),
        ]

        following = Signal.like(accumulator)
        begins = Signal()
        m.d.comb += [following.eq(accumulator + 1), begins.eq(self.commands.valid & self.commands.ready)]
        with m.If(begins):
            m.d.sync += [
                accumulator.eq(command.accumulator),
                accumulate.eq(command.accumulate),
                needs_tile.eq(command.next_tile),
                format.eq(command.format),
            ]
        with m.Elif(granted):
            m.d.sync += [accumulator.eq(following), needs_tile.eq(0)]

        # `recent` are the rows before this one that are on their way to their accumulators. What they have in common
        # with the next row is known one cycle ahead, for each row that may be next: the grant comes late in the cycle.
        row_shape = data.StructLayout({"valid": 1, "row": self.config.accumulator_address_width})
        recent = [Signal(row_shape, name=f"recent_{age}") for age in range(Accumulators.update_latency - 2)]
        for entry, before in zip(recent, [self.tag, *recent], strict=False):
            m.d.sync += [entry.valid.eq(before.valid), entry.row.eq(before.row)]

        def is_recent(row: Value) -> Value:
            return reduce(or_, (entry.valid & (entry.row == row) for entry in recent))

        with m.If(begins):
            repeats = granted & (command.accumulator == accumulator)
            m.d.sync += pending.eq(command.accumulate & (is_recent(command.accumulator) | repeats))
        with m.Elif(granted):
            m.d.sync += pending.eq(accumulate & is_recent(following))
        with m.Else():
            m.d.sync += pending.eq(accumulate & is_recent(accumulator))

        # Format and swap bit travel with their row.
        travelling_format, travelling_swap = format, self.take
        for stage in range(UnifiedBuffer.read_latency):
            delayed_format = Signal(OperandFormat, name=f"format_{stage}", reset_less=True)
            delayed_swap = Signal(name=f"swap_{stage}")
            m.d.sync += [delayed_format.eq(travelling_format), delayed_swap.eq(travelling_swap)]
            travelling_format, travelling_swap = delayed_format, delayed_swap
        m.d.comb += [self.format.eq(travelling_format), self.swap.eq(travelling_swap)]
        return m
