"""Operations of the activation unit alone as tasks: pooling, tables, sums and products of tensors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from openmxu.arch.isa import Operand, Register
from openmxu.arch.isa import Pooling as PoolingMode
from openmxu.compiler.emit.convolve import pooling_registers
from openmxu.compiler.emit.deferred_activations import Chunk
from openmxu.compiler.emit.strip import Strip
from openmxu.compiler.emit.tasks import Rows
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Combination, Lookup, Pooling, Rescaling
from openmxu.compiler.plan.buffers import Buffer

__all__ = ["element_chunks", "pooling_chunks", "pooling_scales"]

_CHUNKS = 16
_CHUNK_ROWS = 64
"""Results of one Activate: a part of an image's plane, so that it begins before all is there, but not too few."""


def element_chunks(index: int, operation: Lookup | Rescaling | Combination, strip: Strip) -> Iterator[Chunk]:
    """A table, another scale, a sum or a product, over all elements of a strip in the order in which they lie."""
    target = strip.buffers[operation.target]
    shared = any(strip.buffers[name].shared for name in operation.sources)
    image = target.plane_elements // len(target.region.images)
    # A constant tensor begins again with each image; of others, too, one image is done before the next one.
    run = image if shared or image >= _CHUNK_ROWS else target.elements
    chunk = min(run, max(_CHUNK_ROWS, -(-run // _CHUNKS)))
    for first in range(0, target.elements, run):
        for start in range(first, first + run, chunk):
            yield _combination(index, operation, strip, start, min(chunk, first + run - start))


def _combination(
    index: int, operation: Lookup | Rescaling | Combination, strip: Strip, start: int, count: int
) -> Chunk:
    target = strip.buffers[operation.target]
    places = {}
    for name in operation.sources:
        buffer = strip.buffers[name]
        places[name] = _shared_element(buffer, target, start) if buffer.shared else start
    touch = strip.touch([(name, first, count) for name, first in places.items()], [(operation.target, start, count)])
    return Chunk(touch, functools.partial(_combine, index, operation, strip, places, start, count))


def _combine(
    index: int,
    operation: Lookup | Rescaling | Combination,
    strip: Strip,
    places: Mapping[str, int],
    start: int,
    count: int,
) -> None:
    """Tasks for ``count`` elements from ``start`` on; ``places`` are the first elements of the sources."""
    strip.machine.tasks.layer = index
    sources = []
    for name in operation.sources:
        strip.need(name, places[name], places[name] + count)
        sources.append(strip.buffers[name].rows(places[name], count))
    registers = {Register.SOURCE_FORMAT: _format(False, 0)}
    wide = [strip.buffers[name].tensor.is_wide for name in operation.sources]
    operand, mode = None, Operand.NONE
    if isinstance(operation, Rescaling):
        registers = {Register.SOURCE_FORMAT: _format(operation.input_signed, operation.zero_point, wide[0])}
    if isinstance(operation, Combination):
        operand, mode = sources[1], Operand.MULTIPLY if operation.multiplies else Operand.ADD
        formats = [_format(*item) for item in zip(operation.input_signed, operation.zero_points, wide, strict=True)]
        registers = {
            Register.SOURCE_FORMAT: formats[0],
            Register.OPERAND_FORMAT: formats[1],
            Register.OPERAND_ADDRESS: {"unified_buffer": operand.first},
            Register.OPERAND_SCALE: {"scale": int(np.float32(operation.second_scale).view(np.uint32))},
        }
    strip.activate(
        index,
        operation,
        0,
        start,
        count,
        source=sources[0],
        from_unified_buffer=True,
        operand_rows=operand,
        registers=registers,
        operand=mode,
    )


def _shared_element(buffer: Buffer, target: Buffer, start: int) -> int:
    """The element of a constant that meets element ``start`` of the target."""
    plane, rest = divmod(start, target.plane_elements)
    return plane * buffer.plane_elements + rest % buffer.plane_elements


def _format(signed: bool, zero_point: int, wide: bool = False) -> Mapping[str, int]:
    return {"signed": signed, "zero_point": zero_point, "wide": wide}


@dataclass(frozen=True)
class _Run:
    """Outputs along one axis whose windows are alike: ``size`` positions, the first window from ``first`` on."""

    outputs: range
    first: int
    size: int


def pooling_scales(operation: Pooling, source: Tensor) -> list[np.float32]:
    """The scales of an operation's parameter sets: one for each divisor of an average."""
    if operation.maximum:
        return [np.float32(1)]
    return [operation.scale(count) for count in _divisors(operation, source)]


def _divisors(operation: Pooling, source: Tensor) -> list[int]:
    return [int(count) for count in np.unique(operation.counts(source.height, source.width))]


def pooling_chunks(index: int, operation: Pooling, strip: Strip) -> Iterator[Chunk]:
    """The maximum or average of each window, plane by plane and image by image, in chunks of rows."""
    source, target = strip.buffers[operation.sources[0]], strip.buffers[operation.target]
    region = target.region
    chunk = max(-(-_CHUNK_ROWS // target.width), -(-len(region.rows) // _CHUNKS))
    for plane in range(target.planes):
        for image in region.images:
            for start in range(region.rows.start, region.rows.stop, chunk):
                rows = range(start, min(start + chunk, region.rows.stop))
                needed = operation.window.rows(rows, source.tensor.height)
                first = source.element(plane, image, needed.start, source.region.columns.start)
                made = target.element(plane, image, rows.start, region.columns.start)
                touch = strip.touch(
                    [(operation.sources[0], first, len(needed) * source.width)],
                    [(operation.target, made, len(rows) * target.width)],
                )
                yield Chunk(touch, functools.partial(_pool, index, operation, strip, (plane, image), rows))


def _pool(index: int, operation: Pooling, strip: Strip, place: tuple[int, int], rows: range) -> None:
    """Tasks for some rows of a plane of an image."""
    strip.machine.tasks.layer = index
    source = strip.buffers[operation.sources[0]]
    needed = operation.window.rows(rows, source.tensor.height)
    first = source.element(*place, needed.start, source.region.columns.start)
    strip.need(operation.sources[0], first, first + len(needed) * source.width)
    is_uniform = operation.maximum or len(_divisors(operation, source.tensor)) == 1
    (_pool_alike if is_uniform else _pool_parts)(index, operation, strip, place, rows)


def _pool_alike(index: int, operation: Pooling, strip: Strip, place: tuple[int, int], rows: range) -> None:
    """Whole rows of outputs, positions outside the plane left out by the hardware."""
    source, target = strip.buffers[operation.sources[0]], strip.buffers[operation.target]
    needed, columns = operation.window.rows(rows, source.tensor.height), source.region.columns
    first = source.element(*place, needed.start, columns.start)
    strip.activate(
        index,
        operation,
        0,
        target.element(*place, rows.start, target.region.columns.start),
        len(rows) * target.width,
        source=source.rows(first, len(needed) * source.width),
        from_unified_buffer=True,
        positions=operation.window.height * operation.window.width,
        registers={
            Register.SOURCE_FORMAT: _format(operation.input_signed, operation.zero_point, source.tensor.is_wide),
            **pooling_registers(operation.window, needed, columns, rows, target.region.columns),
        },
        pooling=PoolingMode.MAX if operation.maximum else PoolingMode.AVERAGE,
    )


def _pool_parts(index: int, operation: Pooling, strip: Strip, place: tuple[int, int], rows: range) -> None:
    """Averages over windows that the plane's edges cut: outputs of equal windows together, windows without the rest."""
    source, target = strip.buffers[operation.sources[0]], strip.buffers[operation.target]
    window = operation.window
    row_runs = list(_runs(rows, window.stride_y, window.top, window.height, source.tensor.height))
    columns = target.region.columns
    column_runs = list(_runs(columns, window.stride_x, window.left, window.width, source.tensor.width))
    if len(column_runs) > 1:
        # Results of one instruction follow each other: parts of a row are parts of one row only.
        row_runs = [
            _Run(range(y, y + 1), run.first + (y - run.outputs.start) * window.stride_y, run.size)
            for run in row_runs
            for y in run.outputs
        ]
    for row_run in row_runs:
        for column_run in column_runs:
            _pool_part(index, operation, strip, place, row_run, column_run)


def _runs(outputs: range, stride: int, padding: int, size: int, length: int) -> Iterator[_Run]:
    """Outputs whose windows lie inside as a whole in one run, the others each in a run of its own."""
    inside: list[int] = []
    for output in outputs:
        first = output * stride - padding
        if first >= 0 and first + size <= length:
            inside.append(output)
            continue
        if inside:
            yield _Run(range(inside[0], inside[-1] + 1), inside[0] * stride - padding, size)
            inside = []
        start = max(first, 0)
        yield _Run(range(output, output + 1), start, min(first + size, length) - start)
    if inside:
        yield _Run(range(inside[0], inside[-1] + 1), inside[0] * stride - padding, size)


def _pool_part(index: int, operation: Pooling, strip: Strip, place: tuple[int, int], rows: _Run, columns: _Run) -> None:
    source, target = strip.buffers[operation.sources[0]], strip.buffers[operation.target]
    window = operation.window
    height = (len(rows.outputs) - 1) * window.stride_y + rows.size
    first = source.element(*place, rows.first, columns.first)
    divisor = _divisors(operation, source.tensor).index(rows.size * columns.size)
    strip.activate(
        index,
        operation,
        divisor,
        target.element(*place, rows.outputs.start, columns.outputs.start),
        len(rows.outputs) * len(columns.outputs),
        # The plane keeps its width, so that it ends as far behind the last row's end as it begins behind a row's begin.
        source=Rows(source.base + first, height * source.width),
        from_unified_buffer=True,
        positions=rows.size * columns.size,
        registers={
            Register.SOURCE_FORMAT: _format(operation.input_signed, operation.zero_point),
            Register.POOLING_WINDOW: {
                "height": rows.size,
                "width": columns.size,
                "stride_y": window.stride_y,
                "stride_x": window.stride_x,
            },
            Register.POOLING_PLANE: {
                "height": height,
                "width": source.width,
                "output_width": len(columns.outputs),
            },
        },
        pooling=PoolingMode.AVERAGE,
    )
