"""The attributes of ONNX operators that have windows: strides, dilations and the ways to say what padding there is."""

from __future__ import annotations

from collections.abc import Sequence

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.window import Window
from openmxu.compiler.onnx.visit import Visit

__all__ = ["read_window"]

_MOST_STRIDE = 255
_MOST_PLANE = (1 << 15) - 1
"""What the signed 16-bit positions of Convolve reach."""


def read_window(here: Visit, kernel: Sequence[int], image: Tensor, dimensions: int) -> Window:
    """The window of a node over an image of one or two ``dimensions``; ``kernel`` always has two.

    With ``ceil_mode`` the padding behind the image grows so that the last window counts.

    Raises
    ------
    ModelError
        Attributes contradict each other, or no output is left.
    UnsupportedOperatorError
        Strides or planes are larger than instructions hold.
    """
    strides = _pair(here, "strides", dimensions, 1)
    dilations = _pair(here, "dilations", dimensions, 1)
    lengths = (image.height, image.width)
    given = here.attributes.get("kernel_shape")
    if given is not None and [*[1] * (2 - dimensions), *given] != list(kernel):
        raise ModelError(f"node {here.name!r}: kernel_shape is {list(given)}, but the kernel {list(kernel)}")
    if min(*strides, *dilations, *kernel) < 1:
        raise ModelError(f"node {here.name!r}: kernel, strides and dilations must be positive")
    if max(strides) > _MOST_STRIDE:
        raise here.unsupported(f"strides above {_MOST_STRIDE} are not supported")
    spans = [(length - 1) * dilation + 1 for length, dilation in zip(kernel, dilations, strict=True)]
    before, after = _padding(here, dimensions, lengths, strides, spans)
    if here.attributes.get("ceil_mode", 0) not in (0, 1):
        raise ModelError(f"node {here.name!r}: ceil_mode must be 0 or 1, not {here.attributes['ceil_mode']}")
    if here.attributes.get("ceil_mode", 0):
        after = [_ceiling(*axis) for axis in zip(lengths, before, after, strides, spans, strict=True)]
    if max(sum(axis) for axis in zip(lengths, before, after, strict=True)) > _MOST_PLANE:
        raise here.unsupported(f"planes of more than {_MOST_PLANE} rows or columns, with padding, are not supported")
    window = Window(*kernel, *strides, *dilations, *before, *after)
    if min(window.outputs(*lengths)) < 1:
        raise ModelError(f"node {here.name!r}: the window of {spans[0]} × {spans[1]} is larger than its input")
    return window


def _pair(here: Visit, name: str, dimensions: int, default: int) -> list[int]:
    """An attribute with a value for each dimension, as height and width."""
    values = list(here.attributes.get(name, [default] * dimensions))
    if len(values) != dimensions:
        raise ModelError(f"node {here.name!r}: {name} must have {dimensions} values, not {len(values)}")
    return [default] * (2 - dimensions) + values


def _padding(
    here: Visit, dimensions: int, lengths: Sequence[int], strides: Sequence[int], spans: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Padding before and behind height and width."""
    automatic = here.attributes.get("auto_pad", b"NOTSET").decode()
    if automatic == "NOTSET":
        pads = list(here.attributes.get("pads", [0] * (2 * dimensions)))
        if len(pads) != 2 * dimensions or min(pads) < 0:
            raise ModelError(f"node {here.name!r}: pads must have {2 * dimensions} values that are not negative")
        missing = [0] * (2 - dimensions)
        return missing + pads[:dimensions], missing + pads[dimensions:]
    if automatic == "VALID":
        return [0, 0], [0, 0]
    if automatic not in ("SAME_UPPER", "SAME_LOWER"):
        raise ModelError(f"node {here.name!r}: auto_pad {automatic!r} is unknown")
    totals = [
        (-(-length // stride) - 1) * stride + span - length
        for length, stride, span in zip(lengths, strides, spans, strict=True)
    ]
    if min(totals) < (-1 if automatic == "SAME_UPPER" else -2):
        # There ONNX Runtime begins behind the first row or column.
        raise here.unsupported(f"auto_pad {automatic} with strides larger than the kernel is not supported; give pads")
    totals = [max(total, 0) for total in totals]
    less, more = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    return (less, more) if automatic == "SAME_UPPER" else (more, less)


def _ceiling(length: int, before: int, after: int, stride: int, span: int) -> int:
    """Padding behind, so that a window that begins inside the image counts though its end does not fit."""
    outputs = -(-(length + before + after - span) // stride) + 1
    if (outputs - 1) * stride >= length + before:
        outputs -= 1
    return max(after, (outputs - 1) * stride + span - length - before)
