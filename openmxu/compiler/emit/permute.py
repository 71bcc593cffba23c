"""Permutations as tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Register
from openmxu.compiler.emit.strip import Strip
from openmxu.compiler.emit.tasks import Rows, WeightTile
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.compiler.ir.permutation import Permutation, Selections, TargetPlane
from openmxu.compiler.plan.buffers import Buffer

__all__ = ["permutation_tasks"]

_MOST_STRIDE = 255
_MOST_WIDTH = (1 << 15) - 1
_CHUNK_ROWS = 64
_CHUNKS = 8
"""Rows of one copy: an eighth of a plane, so that it begins before all is read, but not too few."""
_SELECTION = ByteFormat(signed=False, zero_point=0)


@dataclass(frozen=True)
class _Slot:
    """What a block takes from one source: result (y, x) from element ``first`` + y · ``pitch`` + x · ``stride``."""

    selection: int
    source: int
    first: int
    stride: int
    pitch: int = 0


@dataclass(frozen=True)
class _Block:
    """``height`` × ``width`` results in a row, made alike, from element ``start`` of the target on."""

    start: int
    height: int
    width: int
    slots: tuple[_Slot, ...]

    @property
    def count(self) -> int:
        """Results."""
        return self.height * self.width

    def rows(self, first: int, count: int) -> _Block:
        """Some of its rows."""
        slots = tuple(_Slot(s.selection, s.source, s.first + first * s.pitch, s.stride, s.pitch) for s in self.slots)
        return _Block(self.start + first * self.width, count, self.width, slots)

    def columns(self, first: int, count: int) -> _Block:
        """Some columns of the only row."""
        slots = tuple(_Slot(s.selection, s.source, s.first + first * s.stride, s.stride) for s in self.slots)
        return _Block(self.start + first, 1, count, slots)


def permutation_tasks(
    index: int, operation: Permutation, selections: Selections, first_tile: int, strip: Strip
) -> None:
    """Every plane of the target: copied where it lies in a source as it is, or summed up of selections."""
    for number, plane in enumerate(selections.planes):
        blocks = list(_blocks(operation, plane, number, strip))
        (slot, *others) = blocks[0].slots
        if len(blocks) == blocks[0].height == slot.stride == 1 and not others and slot.selection == plane.copies:
            _copy(index, operation, blocks[0], strip)
            continue
        for band in _bands(blocks, strip.config.accumulator_rows // 2):
            _select(index, operation, band, first_tile, strip)


def _copy(index: int, operation: Permutation, block: _Block, strip: Strip) -> None:
    name = operation.sources[block.slots[0].source]
    chunk = max(_CHUNK_ROWS, -(-block.width // _CHUNKS))
    for start in range(0, block.width, chunk):
        part = block.columns(start, min(chunk, block.width - start))
        first = part.slots[0].first
        strip.need(name, first, first + part.width)
        strip.activate(
            index,
            operation,
            0,
            part.start,
            part.width,
            source=strip.buffers[name].rows(first, part.width),
            from_unified_buffer=True,
            registers={
                Register.SOURCE_FORMAT: {
                    "signed": operation.input_signed,
                    "zero_point": operation.fill,
                    "wide": strip.buffers[name].tensor.is_wide,
                }
            },
        )


def _select(index: int, operation: Permutation, band: Sequence[_Block], first_tile: int, strip: Strip) -> None:
    """Sum up some blocks that follow each other, selection by selection, and write them."""
    count = sum(block.count for block in band)
    sums = strip.machine.take_sums(count)
    steps: dict[int, list[tuple[_Block, _Slot, int]]] = {}
    first = sums
    for block in band:
        for slot in block.slots:
            steps.setdefault(slot.selection, []).append((block, slot, first))
        first += block.count
    begun: set[int] = set()
    for selection, items in steps.items():
        tile: WeightTile | None = WeightTile(first_tile + selection, _SELECTION)
        for block, slot, first in items:
            _multiply(operation, block, slot, first, first in begun, tile, strip)
            begun.add(first)
            tile = None
    strip.activate(index, operation, 0, band[0].start, count, source=Rows(sums, count), from_unified_buffer=False)


def _multiply(
    operation: Permutation,
    block: _Block,
    slot: _Slot,
    sums: int,
    accumulate: bool,
    tile: WeightTile | None,
    strip: Strip,
) -> None:
    name, tasks = operation.sources[slot.source], strip.machine.tasks
    width = (block.width - 1) * slot.stride + 1
    height = block.height
    strip.need(name, slot.first, slot.first + (height - 1) * slot.pitch + width)
    buffer = strip.buffers[name]
    wide, registers = buffer.tensor.is_wide, {}
    if not wide:
        registers[Register.INPUT_FORMAT] = {"signed": operation.input_signed, "zero_point": operation.fill}
    accumulators = Rows(sums, block.count)
    if height == 1 and slot.stride == 1:
        tasks.multiply(
            source=buffer.rows(slot.first, block.width),
            accumulators=accumulators,
            accumulate=accumulate,
            tile=tile,
            registers=registers,
            wide=wide,
        )
        return
    if height > 1:
        width = slot.pitch
    plane = {"height": height, "width": width, "stride_y": 1, "stride_x": slot.stride}
    tasks.convolve(
        source=buffer.rows(slot.first, height * width),
        accumulators=accumulators,
        accumulate=accumulate,
        tile=tile,
        registers={**registers, Register.CONVOLUTION_PLANE: plane},
        wide=wide,
        height=height,
        width=block.width,
        dy=0,
        dx=0,
    )


def _bands(blocks: Sequence[_Block], limit: int) -> Iterator[list[_Block]]:
    """Blocks in bands of at most ``limit`` results; those that are larger are cut.

    Bands are as large as each other: a short last one would let two long ones meet in the accumulators.
    """
    total = sum(block.count for block in blocks)
    limit = -(-total // -(-total // limit))
    band: list[_Block] = []
    room = limit
    for block in blocks:
        for part in _parts(block, limit):
            if part.count > room:
                yield band
                band, room = [], limit
            band.append(part)
            room -= part.count
    yield band


def _parts(block: _Block, limit: int) -> Iterator[_Block]:
    if block.count <= limit:
        yield block
        return
    if block.width <= limit:
        rows = limit // block.width
        yield from (block.rows(y, min(rows, block.height - y)) for y in range(0, block.height, rows))
        return
    for y in range(block.height):
        row = block.rows(y, 1)
        yield from (row.columns(x, min(limit, block.width - x)) for x in range(0, block.width, limit))


def _blocks(operation: Permutation, plane: TargetPlane, number: int, strip: Strip) -> Iterator[_Block]:
    """The results of one plane of a strip, in order, cut where what they are made of is not alike any more."""
    target = strip.buffers[operation.target]
    buffers = [strip.buffers[name] for name in operation.sources]
    first = number * target.plane_elements
    selections, sources, elements = _sources(operation, plane, target, buffers)
    runs = _runs(first, selections, sources, elements)
    waiting = next(runs)
    for run in runs:
        joined = _joined(waiting, run, buffers)
        if joined is None:
            yield waiting
        waiting = joined or run
    yield waiting


def _sources(
    operation: Permutation, plane: TargetPlane, target: Buffer, buffers: Sequence[Buffer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each pick and each result selection, source and element of its buffer; selection -1 where there is none."""
    region, images = target.region, len(target.region.images)
    width = operation.index.shape[1]
    shape = (len(plane.picks), images, len(region.rows) * len(region.columns))
    selections, sources, elements = (np.full(shape, -1) for _ in range(3))
    for pick, selection, source, element in zip(plane.picks, selections, sources, elements, strict=True):
        y, x = np.divmod(pick.targets, width)
        inside = (y >= region.rows.start) & (y < region.rows.stop)
        inside &= (x >= region.columns.start) & (x < region.columns.stop)
        place = ((y - region.rows.start) * len(region.columns) + x - region.columns.start)[inside]
        selection[:, place], source[:, place] = pick.selections[inside], pick.sources[inside]
        for index, buffer in enumerate(buffers):
            own = inside & (pick.sources == index)
            if not own.any():
                continue
            place = ((y - region.rows.start) * len(region.columns) + x - region.columns.start)[own]
            for image in range(images):
                element[image, place] = _elements(buffer, pick.planes[own], image, pick.positions[own])
    count = len(plane.picks)
    return selections.reshape(count, -1), sources.reshape(count, -1), elements.reshape(count, -1)


def _elements(buffer: Buffer, planes: NDArray[np.int64], image: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Elements of a buffer; ``image`` counts from the first one of its region."""
    region = buffer.region
    y, x = np.divmod(positions, buffer.tensor.width)
    # What an empty target takes its place from may lie outside of the region.
    y = np.minimum(np.maximum(y, region.rows.start), region.rows.stop - 1)
    x = np.minimum(np.maximum(x, region.columns.start), region.columns.stop - 1)
    row = (planes * len(region.images) + image) * len(region.rows) + y - region.rows.start
    return row * buffer.width + x - region.columns.start


def _runs(
    first: int, selections: NDArray[np.int64], sources: NDArray[np.int64], elements: NDArray[np.int64]
) -> Iterator[_Block]:
    """Results whose elements are the same distance apart, as blocks of one row."""
    count = selections.shape[1]
    steps = np.diff(elements, axis=1)
    kinds = (np.diff(selections, axis=1) != 0) | (np.diff(sources, axis=1) != 0) | (steps < 0) | (steps > _MOST_STRIDE)
    breaks = kinds.any(axis=0)
    # Where the step to the next result is another one than that before it.
    changes = np.flatnonzero(breaks[1:] | (np.diff(steps, axis=1) != 0).any(axis=0)) + 1
    start = 0
    while start < count:
        stop = start + 1
        if stop < count and not breaks[start]:
            later = np.searchsorted(changes, start + 1)
            stop = int(changes[later]) + 1 if later < len(changes) else count
        stride = steps[:, start] if stop > start + 1 else np.ones(len(steps), np.int64)
        longest = max(1, (_MOST_WIDTH - 1) // max(1, int(stride.max(initial=1))))
        stop = min(stop, start + longest)
        slots = tuple(
            _Slot(
                int(selections[pick, start]), int(sources[pick, start]), int(elements[pick, start]), int(stride[pick])
            )
            for pick in np.flatnonzero(selections[:, start] >= 0)
        )
        yield _Block(first + start, 1, stop - start, slots)
        start = stop


def _joined(first: _Block, second: _Block, buffers: Sequence[Buffer]) -> _Block | None:
    """A block that ``second`` continues by one row, if the hardware can walk over it as a plane."""
    if first.width != second.width or len(first.slots) != len(second.slots):
        return None
    slots = []
    for old, new in zip(first.slots, second.slots, strict=True):
        pitch = new.first - old.first - (first.height - 1) * old.pitch
        span = (first.width - 1) * old.stride + 1
        end = buffers[old.source].elements
        if (
            (old.selection, old.source, old.stride) != (new.selection, new.source, new.stride)
            or not span <= pitch <= _MOST_WIDTH
            or (first.height > 1 and pitch != old.pitch)
            or new.first + pitch > end
        ):
            return None
        slots.append(_Slot(old.selection, old.source, old.first, old.stride, pitch))
    return _Block(first.start, first.height + 1, first.width, tuple(slots))
