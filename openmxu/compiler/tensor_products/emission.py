"""Products of two activations as tasks."""

from __future__ import annotations

from openmxu.arch.isa import Register
from openmxu.compiler.emit.strip import Strip
from openmxu.compiler.emit.tasks import LoadedTile, Rows
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["tensor_product_tasks"]


def tensor_product_tasks(index: int, operation: TensorProduct, strip: Strip) -> None:
    """Matrix by matrix, plane of results by plane: each a sum over the planes of the left matrix."""
    region = strip.buffers[operation.target].region
    for image in region.images:
        for matrix in range(len(operation.left.positions)):
            _multiply(index, operation, strip, image, matrix)


def _multiply(index: int, operation: TensorProduct, strip: Strip, image: int, matrix: int) -> None:
    size, limit = strip.config.size, strip.config.accumulator_rows // 2
    for plane in range(-(-operation.columns // size)):
        for start in range(0, operation.rows, limit):
            count = min(limit, operation.rows - start)
            sums = strip.machine.take_sums(count)
            for inner in range(-(-operation.inner // size)):
                source = _left(operation, strip, image, matrix, inner, start, count)
                strip.machine.tasks.multiply(
                    source=source,
                    accumulators=Rows(sums, count),
                    accumulate=inner > 0,
                    tile=_tile(operation, strip, image, matrix, inner, plane),
                    registers={
                        Register.INPUT_FORMAT: {
                            "signed": operation.input_signed[0],
                            "zero_point": operation.zero_points[0],
                        }
                    },
                )
            made = operation.made
            first = _element(
                strip, operation.target, image, made.positions[matrix] + start, made.channels[matrix] // size + plane
            )
            strip.activate(index, operation, 0, first, count, source=Rows(sums, count), from_unified_buffer=False)


def _element(strip: Strip, name: str, image: int, position: int, plane: int) -> int:
    """An element of a buffer that holds whole images."""
    buffer = strip.buffers[name]
    y, x = divmod(position, buffer.tensor.width)
    return buffer.element(plane, image, y, x)


def _left(operation: TensorProduct, strip: Strip, image: int, matrix: int, inner: int, start: int, count: int) -> Rows:
    """Some rows of a plane of the left matrix."""
    name, left = operation.sources[0], operation.left
    plane = left.channels[matrix] // strip.config.size + inner
    first = _element(strip, name, image, left.positions[matrix] + start, plane)
    strip.need(name, first, first + count)
    return strip.buffers[name].rows(first, count)


def _tile(operation: TensorProduct, strip: Strip, image: int, matrix: int, inner: int, plane: int) -> LoadedTile:
    """A tile of the right matrix. Behind its last row others follow: they meet inputs that are zero, or columns of the
    results that nobody reads."""
    size, name, right = strip.config.size, operation.sources[1], operation.right
    along, across = (plane, inner) if operation.transposed else (inner, plane)
    rows = operation.columns if operation.transposed else operation.inner
    first = _element(
        strip, name, image, right.positions[matrix] + along * size, right.channels[matrix] // size + across
    )
    strip.need(name, first, first + min(size, rows - along * size))
    return LoadedTile(
        rows=Rows(strip.buffers[name].rows(first).first, size),
        transposed=operation.transposed,
        format=ByteFormat(operation.input_signed[1], operation.zero_points[1]),
    )
