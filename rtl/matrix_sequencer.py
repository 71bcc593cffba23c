"""Matrix sequencer: MatrixMultiply instructions become rows for the array and tags for the accumulators."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl import unified_buffer
from openmxu.rtl.accumulators import Accumulators, tag_layout
from openmxu.rtl.commands import matrix_command
from openmxu.rtl.systolic_data_setup import OperandFormat

__all__ = ["MatrixSequencer"]


class MatrixSequencer(wiring.Component):
    """Requests one unified buffer row per cycle, instruction after instruction without a gap.

    A row waits while the tile that its instruction takes is not ready, and while the accumulator row that it adds to is
    still being written by one of the rows just before it.

    Members
    -------
    commands
        Taken with their last row.
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
        count = Signal.like(command.rows)
        first = Signal()
        last = Signal()
        accumulator = Signal(self.config.accumulator_address_width)
        needs_tile = Signal()
        granted = Signal()
        m.d.comb += [
            first.eq(count == 0),
            last.eq(count + 1 == command.rows),
            needs_tile.eq(first & command.next_tile),
            accumulator.eq(command.accumulator + count),
            granted.eq(self.request.valid & self.request.ready),
            self.request.payload.eq(command.unified_buffer + count),
            self.commands.ready.eq(granted & last),
            self.take.eq(granted & needs_tile),
            self.waits_for_tile.eq(self.commands.valid & needs_tile & ~self.tile_ready),
        ]

        recent = Signal(
            data.ArrayLayout(
                data.StructLayout({"valid": 1, "row": self.config.accumulator_address_width}),
                Accumulators.update_latency - 1,
            )
        )
        pending = Signal()
        m.d.comb += [
            pending.eq(
                command.accumulate & reduce(or_, (entry.valid & (entry.row == accumulator) for entry in recent))
            ),
            self.request.valid.eq(self.commands.valid & (~needs_tile | self.tile_ready) & ~pending),
        ]
        m.d.sync += [
            recent[0].valid.eq(granted),
            recent[0].row.eq(accumulator),
        ]
        for newer, older in zip(recent, list(recent)[1:], strict=False):
            m.d.sync += older.eq(newer)

        with m.If(granted):
            m.d.sync += count.eq(count + 1)
            with m.If(last):
                m.d.sync += count.eq(0)

        m.d.comb += [
            self.tag.valid.eq(granted),
            self.tag.row.eq(accumulator),
            self.tag.accumulate.eq(command.accumulate),
            self.tag.last.eq(last),
        ]

        format, swap = command.format, self.take
        for stage in range(unified_buffer.UnifiedBuffer.read_latency):
            delayed_format = Signal(OperandFormat, name=f"format_{stage}", reset_less=True)
            delayed_swap = Signal(name=f"swap_{stage}")
            m.d.sync += [delayed_format.eq(format), delayed_swap.eq(swap)]
            format, swap = delayed_format, delayed_swap
        m.d.comb += [self.format.eq(format), self.swap.eq(swap)]
        return m

