"""Matrix sequencer: turns matrix instructions into rows for the array and tags for the accumulators."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.address_generator import AddressGenerator
from openmxu.rtl.dispatch.commands import matrix_command, matrix_walk
from openmxu.rtl.matrix.accumulators import Accumulators, tag_layout
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat

__all__ = ["MatrixSequencer"]


def _pass_layout(config: Config) -> data.StructLayout:
    """Settings that the rows of one pass over a walk share."""
    return data.StructLayout(
        {
            "accumulate": 1,
            "shift": 2,
            "takes_tile": 1,
            "is_last": 1,
            "format": OperandFormat,
        }
    )


def _row_layout(config: Config) -> data.StructLayout:
    """A row, inside or outside the plane."""
    return data.StructLayout(
        {
            "address": config.unified_buffer_address_width,
            "inside": 1,
            "needs_tile": 1,
            "tag": tag_layout(config),
            "format": OperandFormat,
        }
    )


class MatrixSequencer(wiring.Component):
    """Requests one unified buffer row per cycle, pass after pass and instruction after instruction without a gap.

    16-bit operands take a pass for each pair of bytes over the same rows, input bytes within weight bytes, low bytes
    first; the passes of each weight byte use a separate tile. All passes but the first one add to the accumulators.

    A row waits while the tile that its pass takes is not ready, and while the accumulator row that it adds to is still
    being written by one of the rows just before it. A row outside the plane is zero: it takes its turn without the
    unified buffer.

    Members
    -------
    commands
        A command is taken when the walk of its last pass starts.
    request
        Row addresses for the unified buffer.
    tile_coming, take
        From and to the weight shifter: a tile may be taken in the next cycle, unless one is taken in this one; a tile
        is taken.
    format
        Format of the row that was granted ``UnifiedBuffer.read_latency`` cycles ago.
    swap, zero
        Set with that row if it swaps, and if it is zero whatever the unified buffer returns.
    tag
        Tag of the current row for the accumulators, valid in the cycle in which the row is granted.
    waits_for_tile
        An instruction waits for its tile.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(matrix_command(config))),
                "request": Out(stream.Signature(config.unified_buffer_address_width)),
                "tile_coming": In(1),
                "take": Out(1),
                "format": Out(OperandFormat),
                "swap": Out(1),
                "zero": Out(1),
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
        m.submodules.walker = walker = AddressGenerator(matrix_walk(self.config), context=_pass_layout(self.config))
        self._start_passes(m, walker)
        following = self._describe_row(m, walker.steps.p)

        # The current row is in registers, because its address leads to block RAM. So is all but the unified buffer's
        # grant that it waits for, which leaves time for arbitration: `is_due` is set when the row has its tile, and it
        # goes unless `conflicts` is set, because of a row before it.
        row = Signal(_row_layout(self.config), reset_less=True)
        valid = Signal()
        is_due = Signal()
        is_due_inside = Signal()
        conflicts = Signal(reset_less=True)
        may_go = Signal()
        has_tile = Signal()
        granted = Signal()
        m.d.comb += [
            self.request.payload.eq(row.address),
            self.request.valid.eq(is_due_inside & ~conflicts),
            may_go.eq(is_due & ~conflicts),
            granted.eq(may_go & (~is_due_inside | self.request.ready)),
            walker.steps.ready.eq(~valid | granted),
            self.take.eq(granted & row.needs_tile),
            self.waits_for_tile.eq(valid & row.needs_tile & ~has_tile),
            self.tag.eq(row.tag),
            self.tag.valid.eq(granted),
        ]
        m.d.sync += has_tile.eq(self.tile_coming & ~self.take)

        # `recent` are the rows before this one that are on their way to their accumulators. Conflicts of the next row
        # with them are detected one cycle ahead, for each row that may be next, because the grant comes late in the
        # cycle. A row moves up only when the one before it, if any, has been granted.
        row_shape = data.StructLayout({"valid": 1, "row": self.config.accumulator_address_width})
        recent = [Signal(row_shape, name=f"recent_{age}") for age in range(Accumulators.update_latency - 2)]
        for entry, before in zip(recent, [self.tag, *recent], strict=False):
            m.d.sync += [entry.valid.eq(before.valid), entry.row.eq(before.row)]

        def is_recent(row: Value) -> Value:
            return reduce(or_, (entry.valid & (entry.row == row) for entry in recent))

        repeats = valid & (following.tag.row == row.tag.row)
        takes_last = valid & row.needs_tile
        following_is_due, row_is_due = Signal(), Signal()
        m.d.comb += [
            following_is_due.eq(
                walker.steps.valid & (~following.needs_tile | (self.tile_coming & ~takes_last)),
            ),
            row_is_due.eq(~row.needs_tile | self.tile_coming),
        ]
        with m.If(walker.steps.ready):
            m.d.sync += [
                *(valid.eq(walker.steps.valid), row.eq(following)),
                *(is_due.eq(following_is_due), is_due_inside.eq(following_is_due & following.inside)),
                conflicts.eq(following.tag.accumulate & (is_recent(following.tag.row) | repeats)),
            ]
        with m.Else():
            m.d.sync += [
                *(is_due.eq(row_is_due), is_due_inside.eq(row_is_due & row.inside)),
                conflicts.eq(row.tag.accumulate & is_recent(row.tag.row)),
            ]

        # Format, swap bit and zero bit travel with their row.
        travelling = data.StructLayout({"format": OperandFormat, "zero": 1})
        current = Signal(travelling)
        m.d.comb += [current.format.eq(row.format), current.zero.eq(~row.inside)]
        swap = self.take
        for stage in range(UnifiedBuffer.read_latency):
            delayed = Signal(travelling, name=f"travelling_{stage}", reset_less=True)
            delayed_swap = Signal(name=f"swap_{stage}")
            m.d.sync += [delayed.eq(current), delayed_swap.eq(swap)]
            current, swap = delayed, delayed_swap
        m.d.comb += [self.format.eq(current.format), self.zero.eq(current.zero), self.swap.eq(swap)]
        return m

    def _start_passes(self, m: Module, walker: AddressGenerator) -> None:
        """Give a command's walk to the walker once for each pass, with the settings of the pass."""
        command = self.commands.p
        input_byte, weight_byte = Signal(), Signal()
        is_last_input = Signal()
        started = Signal()
        new = walker.context
        zero_point = command.format.zero_point
        m.d.comb += [
            walker.walks.p.eq(command.walk),
            walker.walks.p.address.eq(command.walk.address + input_byte),
            walker.walks.valid.eq(self.commands.valid),
            started.eq(walker.walks.valid & walker.walks.ready),
            self.commands.ready.eq(walker.walks.ready & new.is_last),
            is_last_input.eq(input_byte == command.walk.wide),
            new.accumulate.eq(command.accumulate | input_byte | weight_byte),
            new.shift.eq(input_byte + weight_byte),
            new.takes_tile.eq(command.next_tile & ~input_byte),
            new.is_last.eq(is_last_input & (weight_byte == command.wide_weights)),
            new.format.eq(command.format),
            # Not Mux, from which synthesis makes a synchronous reset of registers behind it.
            new.format.zero_point.eq(zero_point & (~command.walk.wide).replicate(len(zero_point))),
        ]
        with m.If(command.walk.wide):
            m.d.comb += new.format.is_signed.eq(input_byte)
        with m.If(started):
            m.d.sync += [
                input_byte.eq(~is_last_input),
                # Not with a condition, which would be late.
                weight_byte.eq(weight_byte ^ (is_last_input & command.wide_weights)),
            ]

    def _describe_row(self, m: Module, step: data.View) -> data.View:
        """The row of the walker's current step."""
        walked = step.context
        row = Signal(_row_layout(self.config), name="following")
        m.d.comb += [
            row.address.eq(step.address),
            row.inside.eq(step.inside),
            row.needs_tile.eq(walked.takes_tile & step.first),
            row.format.eq(walked.format),
            row.tag.row.eq(step.target),
            row.tag.accumulate.eq(walked.accumulate),
            row.tag.shift.eq(walked.shift),
            row.tag.last.eq(walked.is_last & step.last),
        ]
        return row
