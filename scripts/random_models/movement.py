"""Operators that put elements in another order, on bytes or between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from scripts.random_models.convolution import FORMS, convolve
from scripts.random_models.dense import multiply_rows
from scripts.random_models.functions import FUNCTIONS, apply_function
from scripts.random_models.graph import Graph, Tensor
from scripts.random_models.pooling import max_pool
from scripts.random_models.shapes import LARGEST_TENSOR

__all__ = ["MOVEMENTS", "concatenate", "move", "moves"]

_REAL_ONLY = ("DepthToSpace", "SpaceToDepth")
"""Operators that ONNX Runtime does not support for bytes."""


_FUNCTIONS = tuple(name for name in FUNCTIONS if name != "HardSwish")
"""Functions that are in every opset used here."""


def moves(graph: Graph, source: Tensor) -> Tensor:
    """One to three such operators, and a layer that needs the elements in their final order in memory."""
    tensor = source
    for _ in range(graph.between(1, 3)):
        name = MOVEMENTS[graph.between(0, len(MOVEMENTS) - 1)]
        tensor = move(graph, tensor, name)
    return _layer(graph, tensor)


def move(graph: Graph, source: Tensor, operator: str) -> Tensor:
    """The operator, or Concat if it does not fit ``source``."""
    if operator == "Concat":
        return concatenate(graph, source)
    made = _MAKERS[operator](graph, source)
    if made is None:
        return concatenate(graph, source)
    constants, attributes = made
    names = [graph.constant(array) for array in constants]
    outputs = 1
    if operator == "Split":
        outputs = len(constants[0])
    as_bytes = operator not in _REAL_ONLY and graph.chance(0.5)
    first = source.name if as_bytes else graph.dequantize(source)
    if operator == "Pad":
        fill = graph.between(*source.quantization.limits)
        zero = source.quantization.zero_point
        fill = zero if graph.chance(0.5) else fill
        real = np.float32(np.float32(fill - zero) * source.quantization.scale)
        names.append(graph.constant(np.asarray(fill, source.dtype) if as_bytes else real))
    results = graph.add_several(operator, [first, *names], outputs, **attributes)
    name = results[graph.between(0, outputs - 1)]
    if not as_bytes:
        name = graph.quantize(name, source.quantization)
    text = f"{operator} {'bytes' if as_bytes else 'QDQ'} {[array.tolist() for array in constants]} {attributes}"
    return graph.tensor(name, source.quantization, text)


def concatenate(graph: Graph, source: Tensor) -> Tensor:
    """Concat of two or three tensors along any dimension; QLinearConcat and QDQ change scales."""
    axis = graph.between(1, len(source.shape) - 1)
    sources = [source]
    for _ in range(graph.between(1, 2)):
        if sum(item.values.size for item in sources) <= LARGEST_TENSOR // 2:
            sources.append(_beside(graph, source, axis))
    graph.random.shuffle(sources)
    forms = ("bytes", "QDQ", "QLinear")
    same = len({(item.quantization.scale, item.quantization.zero_point) for item in sources}) == 1
    form = forms[graph.between(0 if same else 1, 2)]
    result = source.quantization
    if form != "bytes":
        result = graph.fit(np.concatenate([item.real for item in sources], axis=axis), source.dtype)
    match form:
        case "bytes":
            name = graph.add("Concat", [item.name for item in sources], axis=axis)
        case "QDQ":
            name = graph.around("Concat", sources, result, axis=axis)
        case _:
            parts = [text for item in sources for text in (item.name, *graph.parameters(item.quantization))]
            name = graph.add("QLinearConcat", [*graph.parameters(result), *parts], "com.microsoft", axis=axis)
    return graph.tensor(name, result, "Concat", form, f"axis {axis}")


def _beside(graph: Graph, source: Tensor, axis: int) -> Tensor:
    """A tensor of the same type that differs from ``source`` along one dimension at most."""
    choice = graph.random.random()
    if choice < 0.3:
        return source
    if choice < 0.5 and len(source.shape) > 2:
        return convolve(graph, source, FORMS[graph.between(0, 1)], same_shape=True)
    if choice < 0.7:
        shape = list(source.shape)
        shape[axis] = graph.between(1, 6)
        return graph.new_input(tuple(shape), source.dtype, graph.between(0, 255))
    last = graph.between(1, source.shape[axis])
    bounds = [graph.constant(np.array([value])) for value in (0, last, axis)]
    name = graph.add("Slice", [source.name, *bounds])
    return graph.tensor(name, source.quantization, f"Slice to {last} of axis {axis}")


def _layer(graph: Graph, source: Tensor) -> Tensor:
    """A layer for a ``source`` of any shape."""
    rank = len(source.shape)
    choice = graph.random.random()
    if choice < 0.15:
        return apply_function(graph, source, _FUNCTIONS[graph.between(0, len(_FUNCTIONS) - 1)])
    if rank in (3, 4) and choice < 0.5:
        return convolve(graph, source, FORMS[graph.between(0, 1)])
    if rank in (3, 4) and choice < 0.65:
        return max_pool(graph, source)
    if choice < 0.8 and rank > 2:
        return multiply_rows(graph, source)
    return multiply_rows(graph, graph.flat(source))


Made = tuple[list[np.ndarray], dict[str, object]] | None
"""Constant inputs and attributes."""


def _transpose(graph: Graph, source: Tensor) -> Made:
    order = [0, *(1 + graph.random.permutation(len(source.shape) - 1))]
    return [], {"perm": [int(axis) for axis in order]}


def _reshape(graph: Graph, source: Tensor) -> Made:
    lengths = []
    rest = math.prod(source.shape[1:])
    while rest > 1 and len(lengths) < 2 and graph.chance(0.9):
        divisors = [count for count in range(1, rest + 1) if rest % count == 0]
        lengths.append(divisors[graph.between(0, len(divisors) - 1)])
        rest //= lengths[-1]
    lengths.append(rest)
    graph.random.shuffle(lengths)
    first = len(source.values) if graph.has_fixed_batch else 0
    shape = [(0, first, -1)[graph.between(0, 2)], *lengths]
    return [np.array(shape)], {}


def _flatten(graph: Graph, source: Tensor) -> Made:
    return [], {"axis": 1}


def _unsqueeze(graph: Graph, source: Tensor) -> Made:
    return ([np.array([graph.between(1, len(source.shape))])], {}) if len(source.shape) < 4 else None


def _squeeze(graph: Graph, source: Tensor) -> Made:
    axes = [axis for axis, length in enumerate(source.shape) if axis and length == 1]
    return ([np.array(axes[-1:])], {}) if axes and len(source.shape) > 2 else None


def _slice(graph: Graph, source: Tensor) -> Made:
    axes = [axis for axis in range(1, len(source.shape)) if graph.chance(0.6)] or [1]
    starts, ends, steps = [], [], []
    for axis in axes:
        length, step = source.shape[axis], graph.between(1, 2)
        first = graph.between(0, length - 1)
        stop = graph.between(first + 1, length)
        if graph.chance(0.2):  # backwards
            first, stop, step = stop - 1, (first - 1 if first else -length - 1), -step
        elif graph.chance(0.3):
            first, stop = first - length, stop if graph.chance(0.5) else 2**31
        starts.append(first)
        ends.append(stop)
        steps.append(step)
    return [np.array(values) for values in (starts, ends, axes, steps)], {}


def _pad(graph: Graph, source: Tensor) -> Made:
    mode = ("constant", "constant", "constant", "edge", "reflect")[graph.between(0, 4)]
    before, after = ([0] * len(source.shape) for _ in range(2))
    for axis in range(1, len(source.shape)):
        most = min(2, source.shape[axis] - 1) if mode == "reflect" else 2
        if graph.chance(0.6):
            before[axis], after[axis] = graph.between(0, most), graph.between(0, most)
    return [np.array(before + after)], {"mode": mode}


def _split(graph: Graph, source: Tensor) -> Made:
    axis = graph.between(1, len(source.shape) - 1)
    if source.shape[axis] < 2:
        return None
    first = graph.between(1, source.shape[axis] - 1)
    return [np.array([first, source.shape[axis] - first])], {"axis": axis}


def _tile(graph: Graph, source: Tensor) -> Made:
    repeats = [1, *(graph.between(1, 2) for _ in source.shape[1:])]
    return ([np.array(repeats)], {}) if math.prod(repeats) * source.values.size <= LARGEST_TENSOR else None


def _expand(graph: Graph, source: Tensor) -> Made:
    shape = [1, *(graph.between(1, 3) if length == 1 else length for length in source.shape[1:])]
    return ([np.array(shape)], {}) if math.prod(shape) * len(source.values) <= LARGEST_TENSOR else None


def _gather(graph: Graph, source: Tensor) -> Made:
    axis = graph.between(1, len(source.shape) - 1)
    length = source.shape[axis]
    return [graph.random.integers(-length, length, graph.between(1, length))], {"axis": axis}


def _space(graph: Graph, source: Tensor) -> Made:
    if len(source.shape) != 4 or source.shape[2] % 2 or source.shape[3] % 2:
        return None
    return [], {"blocksize": 2}


def _depth(graph: Graph, source: Tensor) -> Made:
    if len(source.shape) != 4 or source.shape[1] % 4:
        return None
    return [], {"blocksize": 2, "mode": ("DCR", "CRD")[graph.between(0, 1)]}


_MAKERS: dict[str, Callable[[Graph, Tensor], Made]] = {
    "DepthToSpace": _depth,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "SpaceToDepth": _space,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
MOVEMENTS = ("Concat", *_MAKERS)
"""Operators that :func:`move` knows."""
