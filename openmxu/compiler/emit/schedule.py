"""Instructions out of a planned network.

Every unit executes its instructions in order and waits by itself for what it needs, so the schedule is one sequence:
multiplications in the order of the sections, and between them reads, weights and parameters just ahead of their use,
activations and writes as soon as their sums are complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from openmxu.arch.config import Config
from openmxu.arch.isa import OutputFormat, Register
from openmxu.compiler.emit.emitter import Code, Emitter, ParameterSets, ReadStream, WeightRun, WeightStream
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.compiler.plan.chain import DenseLayer
from openmxu.compiler.plan.inputs import input_address, plan_reads
from openmxu.compiler.plan.sections import Multiplication, Section, sections
from openmxu.compiler.plan.segments import LayerShape, Plan, Segment

__all__ = ["Memory", "ScheduledLayer", "schedule"]

_MOST_TILES = (1 << 24) - 1
"""Tiles of one Read_Weights."""


@dataclass(frozen=True)
class ScheduledLayer:
    """A layer, its tiles, how its weights are stored and the number of its first tile in weight memory.

    Its tiles lie in the order of use: groups of output tiles, within a group the passes, within a pass the tiles.
    """

    layer: DenseLayer
    shape: LayerShape
    format: ByteFormat
    first_tile: int


@dataclass(frozen=True)
class Memory:
    """Byte addresses in host memory.

    Attributes
    ----------
    tensors
        For each segment its input, and then the output of the last one.
    parameters
        For each layer its first parameter set.
    """

    tensors: tuple[int, ...]
    parameters: tuple[int, ...]


def schedule(layers: Sequence[ScheduledLayer], plan: Plan, memory: Memory, rows: int, config: Config) -> Code:
    """The program of a network for ``rows`` matrix rows, ended by Halt."""
    emitter = Emitter()
    work = sections(plan, [item.shape for item in layers], config)
    weights = WeightStream(emitter, config, _weight_runs(layers, [section for part in work for section in part]))
    parameters = ParameterSets(
        emitter,
        config,
        memory.parameters,
        [item.shape.tiles for item in layers],
        plan.load_sets,
        plan.staging_slots,
    )
    for index, segment in enumerate(plan.segments):
        reads = plan_reads(segment, work[index], memory.tensors[index], rows, config)
        runner = _SegmentRunner(
            emitter=emitter,
            layers=layers,
            segment=segment,
            weights=weights,
            parameters=parameters,
            reads=ReadStream(emitter, reads),
            output=memory.tensors[index + 1],
            rows=rows,
            config=config,
        )
        for section in work[index]:
            runner.run(section)
        runner.finish()
    emitter.halt()
    return emitter.code()


def _weight_runs(layers: Sequence[ScheduledLayer], work: Sequence[Section]) -> list[WeightRun]:
    """The tiles that sections take one after the other, joined where they are neighbours in memory."""
    runs: list[WeightRun] = []
    for section in work:
        item = layers[section.layer]
        first = item.first_tile + section.shape.passes * section.tiles.start
        tiles = section.shape.passes * len(section.tiles)
        last = runs[-1] if runs else None
        if (
            last is not None
            and last.format == item.format
            and last.first + last.tiles == first
            and last.tiles + tiles <= _MOST_TILES
        ):
            runs[-1] = WeightRun(last.format, last.first, last.tiles + tiles)
        else:
            runs.append(WeightRun(item.format, first, tiles))
    return runs


@dataclass(frozen=True)
class _Activation:
    """Sums of one output tile that are complete, and the unified buffer row that they go to."""

    section: Section
    tile: int
    accumulator: int
    target: int


@dataclass
class _SegmentRunner:
    """Emits the sections of one segment.

    Activations of a group of tiles wait in ``pending`` and come one by one between the multiplications of the next
    section: all at once they would fill the activation unit's queue and hold the multiplications back.
    """

    emitter: Emitter
    layers: Sequence[ScheduledLayer]
    segment: Segment
    weights: WeightStream
    parameters: ParameterSets
    reads: ReadStream
    output: int
    rows: int
    config: Config
    pending: deque[_Activation] = field(default_factory=deque)
    _position: int = 0
    _panel: int = -1
    _panel_key: tuple[int, ...] = ()
    _multiplications: int = 0
    _next_accumulator: int = 0
    _sums: tuple[int, ...] = ()
    _sums_key: tuple[int, ...] = ()
    _tile_writes: int = 0

    def run(self, section: Section) -> None:
        """Multiply, activate, and write what leaves the segment."""
        self._take_accumulators(section)
        self._activate_before(section)
        layer = self.layers[section.layer].layer
        self.emitter.layer = section.layer
        self.emitter.configure(Register.INPUT_FORMAT, signed=layer.input_signed, zero_point=layer.input_zero_point)
        loaded = False
        for item in section.multiplications():
            if item.index == section.shape.passes - 1 and not loaded:
                self.parameters.require(section.layer, section.tiles[0])
                loaded = True
            self._multiply(section, item)
            self._multiplications += 1
            if self.pending and self._multiplications % (self.config.column_groups * section.shape.output_rows) == 0:
                self._activate(self.pending.popleft())
        for tile, accumulator in zip(section.tiles, self._sums, strict=True):
            target = self._output_row(section, tile)
            self.pending.append(_Activation(section, tile, accumulator + section.start, target))
        # Some room stays in the activation unit's queue for a load of parameters.
        for _ in range(min(len(self.pending), max(1, self.config.command_queue_depth - 2))):
            self._activate(self.pending.popleft())

    def finish(self) -> None:
        """Activate what is still pending."""
        while self.pending:
            self._activate(self.pending.popleft())

    def _activate_before(self, section: Section) -> None:
        """Activate what the section would overwrite or may read."""
        while self.pending and (
            (self.pending[0].section.layer, self.pending[0].section.block) != (section.layer, section.block)
            or any(item.accumulator - item.section.start in self._sums for item in self.pending)
        ):
            self._activate(self.pending.popleft())

    def _take_accumulators(self, section: Section) -> None:
        """A place for each tile of the section's group; the sections of one block and group share theirs."""
        key = (section.layer, section.block, section.group)
        if key != self._sums_key:
            places = self.config.accumulator_rows // self.segment.block_rows
            first = self._next_accumulator
            self._sums = tuple(
                (first + index) % places * self.segment.block_rows for index in range(len(section.tiles))
            )
            self._next_accumulator = (first + len(section.tiles)) % places
            self._sums_key = key

    def _multiply(self, section: Section, item: Multiplication) -> None:
        self.emitter.layer = section.layer
        if item.next_tile:
            self.weights.take()
        if section.layer == self.segment.first:
            self.reads.advance(self._position)
            self._position += 1
        self.emitter.multiply(
            unified_buffer=self._input_row(section, item) + item.start,
            accumulator=self._sums[item.tile - section.tiles.start] + item.start,
            rows=item.stop - item.start,
            accumulate=item.index > 0,
            next_tile=item.next_tile,
        )

    def _input_row(self, section: Section, item: Multiplication) -> int:
        """Where the first row of the block's plane lies."""
        segment, offset = self.segment, section.layer - self.segment.first
        if offset == 0:
            key = (section.block, section.group, section.start, item.plane)
            if key != self._panel_key:
                self._panel_key = key
                self._panel += 1
            return input_address(segment, self._panel, section.block, item.plane, section.shape.planes)
        slot = section.block % segment.slots
        return segment.inputs[offset] + (slot * section.shape.planes + item.plane) * segment.block_rows

    def _output_row(self, section: Section, tile: int) -> int:
        """Where the section's rows of an output tile go: the next layer's input, or the place of outputs."""
        segment = self.segment
        following = section.layer + 1
        if following < segment.stop:
            slot = section.block % segment.slots
            planes = self.layers[following].shape.planes
            first = segment.inputs[following - segment.first]
            return first + (slot * planes + tile) * segment.block_rows + section.start
        slot, index = divmod(tile, segment.write_tiles)
        slot = (self._tile_writes + slot) % segment.output_slots
        if tile == section.shape.tiles - 1:
            self._tile_writes += -(-section.shape.tiles // segment.write_tiles)
        place = slot * segment.write_tiles + index
        return segment.output + (place * segment.block_rows + section.start) * section.shape.output_rows

    def _activate(self, item: _Activation) -> None:
        section = item.section
        layer = self.layers[section.layer].layer
        self.emitter.layer = section.layer
        parameters = self.parameters.require(section.layer, item.tile)
        output = OutputFormat.INT32
        if layer.scale is not None:
            output = OutputFormat.BYTE
            self.emitter.configure(
                Register.OUTPUT_FORMAT, zero_point=layer.zero_point, minimum=layer.minimum, maximum=layer.maximum
            )
        self.emitter.activate(
            unified_buffer=item.target,
            accumulator=item.accumulator,
            rows=section.stop - section.start,
            parameters=parameters,
            output=output,
        )
        if section.layer == self.segment.stop - 1:
            self._write(section, item.tile, item.target)

    def _write(self, section: Section, tile: int, source: int) -> None:
        """Write a tile's rows, or once its last one is there a number of neighbouring tiles."""
        index = tile % self.segment.write_tiles
        if index < self.segment.write_tiles - 1 and tile < section.shape.tiles - 1:
            return
        output_rows = section.shape.output_rows
        rows = (section.stop - section.start) * output_rows
        before = index * self.segment.block_rows * output_rows
        first = self.segment.blocks[section.block][0] + section.start
        address = self.output + ((tile - index) * self.rows + first) * output_rows * self.config.size
        self.emitter.write(source - before, address, before + rows)
