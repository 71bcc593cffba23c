"""From how a graph sees a tensor to how the device has it: rows for each position, channels in lanes."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.operations import Result
from openmxu.compiler.ir.permutation import FILL, Permutation
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.builder import Builder
from openmxu.compiler.operators.values import Integers, Moved, Quantized, Real

__all__ = [
    "as_elements",
    "as_image",
    "as_rows",
    "borders",
    "element_numbers",
    "has_rows",
    "parts_of",
    "place_parts",
    "settled",
]


def as_image(here: Visit, value: Integers | Moved) -> Integers:
    """The tensor of an image, whose channels are its first dimension; one or two dimensions follow.

    Raises
    ------
    UnsupportedOperatorError
        There are more or fewer dimensions.
    """
    if len(value.shape) not in (2, 3):
        raise here.unsupported(f"the input must have one or two dimensions behind its channels: {value.shape}")
    builder = here.builder
    channels, height, width = value.shape if len(value.shape) == 3 else (value.shape[0], 1, value.shape[1])
    if isinstance(value, Integers):
        if builder.is_open(value):
            builder.as_image(value)
        if builder.image_shape(value.tensor) == (channels, height, width):
            return value
    numbers = element_numbers(builder, value).reshape(channels, height, width)
    return _arranged(here, value, np.ascontiguousarray(numbers.transpose(1, 2, 0)), channels_first=True)


def as_rows(here: Visit, value: Integers | Moved) -> Integers:
    """The tensor of a matrix, whose columns are the last dimension; all others together are its rows.

    It may be one of an image that lies in memory as the matrix does.
    """
    builder = here.builder
    part = parts_of(value)[0]
    if isinstance(value, Integers) and builder.is_open(value):
        builder.as_matrix(value)
    numbers = element_numbers(builder, value).reshape(-1, value.shape[-1])
    tensor = builder.tensors[part.tensor]
    is_alone = len(parts_of(value)) == 1 and tensor.channels == numbers.shape[1]
    if is_alone and np.array_equal(numbers.reshape(-1), np.arange(tensor.positions * tensor.channels)):
        return dataclasses.replace(part, shape=value.shape)
    return _arranged(here, value, numbers[:, np.newaxis], channels_first=False)


def as_elements(here: Visit, values: list[Integers | Moved]) -> tuple[list[Integers], bool]:
    """Tensors of one shape in the same layout, the one in which they are already, if that is so.

    The second result tells whether their channels are the first dimension.
    """
    builder = here.builder
    place_parts(builder, [part for value in values for part in parts_of(value)])
    simple = [value for value in values if isinstance(value, Integers)]
    layouts = {builder.channels_first[value.tensor] for value in simple}
    if len(simple) == len(values) and len(layouts) == 1:
        tensors = [builder.tensors[value.tensor] for value in simple]
        if len({(item.height, item.width, item.channels) for item in tensors}) == 1:
            return simple, layouts.pop()
    moves_rows = not simple and all(has_rows(builder, value) for value in values)
    if len(values[0].shape) in (2, 3) and (not simple or True in layouts) and not moves_rows:
        return [as_image(here, value) for value in values], True
    matrices = [element_numbers(builder, value).reshape(-1, 1, value.shape[-1]) for value in values]
    pairs = zip(values, matrices, strict=True)
    return [_arranged(here, value, numbers, channels_first=False) for value, numbers in pairs], False


def has_rows(builder: Builder, value: Integers | Moved) -> bool:
    """Whether what is in the last dimension are neighbouring channels of matrices."""
    numbers = element_numbers(builder, value)
    is_image = any(builder.channels_first[part.tensor] for part in parts_of(value))
    return not is_image and numbers.shape[-1] > 1 and bool((np.diff(numbers, axis=-1) == 1).all())


def settled(here: Visit, value: Moved) -> Integers | Real | Moved:
    """The same elements where they are to lie; ``value`` itself where its parts do not mean the same."""
    quantized = Quantized.of(value)
    if quantized is None and isinstance(value.parts[0], Real):
        return value
    moved = value if quantized is None else quantized.value
    (integers,), _ = as_elements(here, [moved])
    return integers if quantized is None else dataclasses.replace(quantized, value=integers).real()


def parts_of(value: Integers | Moved) -> tuple[Integers, ...]:
    """The tensors that a value is made of."""
    return (value,) if isinstance(value, Integers) else value.parts


def place_parts(builder: Builder, parts: list[Integers]) -> None:
    """Decide what the columns of open inputs are: as in the others, or the channels of an image."""
    known = [part for part in parts if not builder.is_open(part)]
    for part in parts:
        if builder.is_open(part):
            as_image = builder.channels_first[known[0].tensor] if known else len(part.shape) == 3
            if as_image and len(part.shape) in (2, 3):
                builder.as_image(part)
            else:
                builder.as_matrix(part)


def element_numbers(builder: Builder, value: Integers | Moved) -> NDArray[np.int64]:
    """For each element, in its place, the number that it has in :class:`Permutation`; sources are the parts."""
    numbers = []
    first = 0
    place_parts(builder, list(parts_of(value)))
    for part in parts_of(value):
        tensor = builder.tensors[part.tensor]
        count = tensor.positions * tensor.channels
        own = np.arange(first, first + count)
        if builder.channels_first[part.tensor]:
            own = own.reshape(tensor.positions, tensor.channels).T.reshape(-1)
        numbers.append(own)
        first += count
    if isinstance(value, Integers):
        return numbers[0].reshape(value.shape)
    return np.concatenate([*numbers, [FILL]])[value.index]


def borders(value: Moved) -> tuple[int, int, int, int] | None:
    """How many rows above, columns on the left, rows below and columns on the right a part has got; else ``None``."""
    if len(value.parts) != 1 or value.index.ndim != len(value.parts[0].shape) or value.index.ndim not in (2, 3):
        return None
    shape = value.parts[0].shape
    inside = np.argwhere(value.index != FILL)
    if not len(inside):
        return None
    before = inside.min(axis=0)
    after = np.array(value.shape) - inside.max(axis=0) - 1
    kept = value.index[tuple(slice(start, start + length) for start, length in zip(before, shape, strict=True))]
    if before[0] or after[0] or kept.shape != shape or len(inside) != kept.size:
        return None
    if not np.array_equal(kept.reshape(-1), np.arange(kept.size)):
        return None
    rows = (0, 0) if len(shape) == 2 else (int(before[1]), int(after[1]))
    return rows[0], int(before[-1]), rows[1], int(after[-1])


def _arranged(here: Visit, value: Integers | Moved, index: NDArray[np.int64], channels_first: bool) -> Integers:
    """The tensor of ``value`` in the order ``index``, (height, width, channels); made once."""
    builder, parts = here.builder, parts_of(value)
    height, width, channels = index.shape
    tensor = Tensor(height, width, channels, True).of_type(value.dtype)
    names = tuple(part.tensor for part in parts)
    fill = 0 if isinstance(value, Integers) else int(value.fill)
    if value.is_wide and fill != 0 and (index == FILL).any():
        raise here.unsupported(f"int16 tensors can be filled up with 0, not with {fill}")
    is_in_order = len(parts) == 1 and np.array_equal(index.reshape(-1), np.arange(index.size))
    if is_in_order and builder.tensors[names[0]] == tensor:
        return Integers(names[0], value.shape, value.dtype)
    key = (names, index.shape, index.tobytes(), fill, channels_first)
    if key not in builder.arranged:
        name = here.name if isinstance(value, Integers) else value.name
        target = f"{name} arranged {len(builder.arranged)}"
        limits = np.iinfo(value.dtype)
        sources, index = _distinct(builder, names, index)
        operation = Permutation(
            name=name,
            sources=sources,
            target=target,
            result=Result(np.ones((), np.float32), fill, limits.min, limits.max),
            index=index,
            input_signed=tensor.signed,
            fill=fill,
        )
        builder.add(operation, tensor, channels_first)
        builder.arranged[key] = target
    return Integers(builder.arranged[key], value.shape, value.dtype)


def _distinct(
    builder: Builder, names: tuple[str, ...], index: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Sources without those that are there twice or not needed, and the numbers of elements among the others."""
    counts = [builder.tensors[name].positions * builder.tensors[name].channels for name in names]
    kept: list[str] = []
    moved = np.full(sum(counts) + 1, FILL)
    place = {}
    first = end = 0
    for name, count in zip(names, counts, strict=True):
        if ((index >= first) & (index < first + count)).any():
            if name not in place:
                place[name] = end
                kept.append(name)
                end += count
            moved[first : first + count] = np.arange(place[name], place[name] + count)
        first += count
    return tuple(kept or names[:1]), moved[index]
