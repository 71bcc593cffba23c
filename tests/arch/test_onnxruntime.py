"""The arithmetic of the activation unit against ONNX Runtime's kernels, operator by operator, without a device."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled, pool, requantize
from scripts.random_models import random_bytes
from scripts.random_models.graph import Graph, Quantization, Tensor

SHAPE = (2, 12, 9, 11)
KERNEL, STRIDES, PADS = (3, 2), (2, 1), (1, 0, 2, 1)
WINDOW = {"kernel_shape": list(KERNEL), "strides": list(STRIDES), "pads": list(PADS)}


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(11)


def graphs(random: np.random.Generator, dtype: str, powers_of_two: bool = False, count: int = 16) -> list[Graph]:
    """Graphs with zero points from the whole range."""
    return [Graph(random, SHAPE, dtype, index * 255 // (count - 1), powers_of_two) for index in range(count)]


def centred(tensor: Tensor) -> NDArray[np.int32]:
    return tensor.values.astype(np.int32) - np.int32(tensor.quantization.zero_point)


def windows(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Windows as an array (batch, channels, height, width, positions); the padding is 0."""
    padded = np.pad(values, ((0, 0), (0, 0), (PADS[0], PADS[2]), (PADS[1], PADS[3])))
    view = sliding_window_view(padded, KERNEL, (2, 3))[:, :, :: STRIDES[0], :: STRIDES[1]]
    return view.reshape(*view.shape[:4], -1)


def pooled(values: NDArray[np.int32], maximum: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """:func:`openmxu.arch.numerics.pool` of every window, and the number of valid positions in each."""
    rows = np.moveaxis(windows(values), 1, -1)
    inside = windows(np.ones_like(values))[:, 0] > 0
    flat = pool(rows.reshape(-1, *rows.shape[-2:]), inside.reshape(-1, inside.shape[-1]), maximum)
    return np.moveaxis(flat.reshape(*rows.shape[:3], -1), -1, 1), inside.sum(axis=-1)[:, np.newaxis]


def differences(tensor: Tensor, result: NDArray[np.int32]) -> NDArray[np.int32]:
    """Differences between ``result`` and ONNX Runtime's values of ``tensor``, which must be many different ones."""
    assert tensor.shape == result.shape
    assert len(np.unique(tensor.values)) > 12
    return np.abs(result - tensor.values).reshape(-1)


def requantized(values: NDArray[np.int32], scale: NDArray[np.float32], result: Quantization) -> NDArray[np.int32]:
    return requantize(values, np.asarray(scale, np.float32), result.zero_point, *result.limits)


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")], ids="×".join)
@pytest.mark.parametrize("groups", [1, 4, 12])
@pytest.mark.parametrize("powers_of_two", [False, True])
def test_qlinear_conv(random: np.random.Generator, types: tuple[str, str], groups: int, powers_of_two: bool) -> None:
    outputs, inputs = 24, SHAPE[1] // groups
    for number, graph in enumerate(graphs(random, types[0], powers_of_two)):
        channels = (outputs,) if number % 2 else ()
        weights = random_bytes(random, types[1], (outputs, inputs, *KERNEL))
        zero_point = random_bytes(random, types[1], channels)
        scale = graph.scale(random.uniform(0.01, 0.03, channels))
        # (groups, outputs of a group, channels of a group × positions)
        matrices = weights.astype(np.int64) - zero_point.astype(np.int64).reshape((-1, 1, 1, 1) if channels else ())
        matrices = matrices.reshape(groups, outputs // groups, -1)
        patches = windows(centred(graph.input)).astype(np.int64)
        patches = patches.reshape(patches.shape[0], groups, inputs, *patches.shape[2:])
        patches = np.moveaxis(patches, 2, -2).reshape(*patches.shape[:2], *patches.shape[3:5], -1)
        sums = np.einsum("ngyxk,gok->ngoyx", patches, matrices).reshape(SHAPE[0], outputs, *patches.shape[2:4])
        bias = random.integers(-(2**14), 2**14, outputs)
        sums = (sums + bias[:, np.newaxis, np.newaxis]).astype(np.int32)

        unit = (graph.input.quantization.scale * scale).astype(np.float32).reshape((-1, 1, 1) if channels else ())
        result = graph.fit(sums * unit.astype(np.float64), types[0])
        parts = [graph.constant(array) for array in (weights, scale, zero_point)]
        names = [graph.input.name, *graph.parameters(graph.input.quantization), *parts, *graph.parameters(result)]
        name = graph.add("QLinearConv", [*names, graph.constant(bias.astype(np.int32))], group=groups, **WINDOW)
        assert not differences(graph.tensor(name, result), requantized(sums, unit / result.scale, result)).any()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_max_pool(random: np.random.Generator, dtype: str) -> None:
    for graph in graphs(random, dtype):
        quantization = graph.input.quantization
        tensor = graph.tensor(graph.add("MaxPool", [graph.input.name], **WINDOW), quantization)
        maxima, _ = pooled(centred(graph.input), maximum=True)
        assert not differences(tensor, maxima + quantization.zero_point).any()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("powers_of_two", [False, True])
@pytest.mark.parametrize("include_padding", [0, 1])
def test_average_pool(random: np.random.Generator, dtype: str, powers_of_two: bool, include_padding: int) -> None:
    distance = []
    for graph in graphs(random, dtype, powers_of_two):
        sums, counts = pooled(centred(graph.input), maximum=False)
        counts = np.full_like(counts, KERNEL[0] * KERNEL[1]) if include_padding else counts
        source = graph.input.quantization
        result = graph.fit(sums / counts * float(source.scale), dtype)
        name = graph.quantized("AveragePool", [graph.input], result, count_include_pad=include_padding, **WINDOW)
        scale = source.scale / (result.scale * counts.astype(np.float32))
        distance.append(differences(graph.tensor(name, result), requantized(sums, scale, result)))
    check_rare(distance, powers_of_two)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_global_average_pool(random: np.random.Generator, dtype: str) -> None:
    for graph in graphs(random, dtype):
        sums = centred(graph.input).sum(axis=(2, 3), keepdims=True, dtype=np.int32)
        source, count = graph.input.quantization, np.float32(SHAPE[2] * SHAPE[3])
        result = graph.fit(sums / count * float(source.scale), dtype)
        tensor = graph.tensor(graph.quantized("GlobalAveragePool", [graph.input], result), result)
        assert not differences(tensor, requantized(sums, source.scale / (result.scale * count), result)).any()


def operand(graph: Graph) -> Tensor:
    """A random second operand."""
    dtype = graph.input.dtype
    values = random_bytes(graph.random, dtype, SHAPE)
    scale, zero_point = graph.scale(graph.random.uniform(0.01, 0.05)), random_bytes(graph.random, dtype, ())
    return Tensor(graph.constant(values), values, Quantization(dtype, np.float32(scale), int(zero_point)))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("powers_of_two", [False, True])
def test_qlinear_add(random: np.random.Generator, dtype: str, powers_of_two: bool) -> None:
    distance = []
    for graph in graphs(random, dtype, powers_of_two):
        first, second = graph.input, operand(graph)
        result = graph.fit(first.real + second.real, dtype)
        tensor = graph.tensor(graph.quantized("Add", [first, second], result), result)
        scales = [np.asarray(item.quantization.scale / result.scale) for item in (first, second)]
        sums = add_scaled(centred(first), scales[0], centred(second), scales[1], result.zero_point, *result.limits)
        distance.append(differences(tensor, sums))
    check_rare(distance, powers_of_two)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("powers_of_two", [False, True])
def test_qlinear_mul(random: np.random.Generator, dtype: str, powers_of_two: bool) -> None:
    distance = []
    for graph in graphs(random, dtype, powers_of_two):
        first, second = graph.input, operand(graph)
        result = graph.fit(first.real * second.real, dtype)
        tensor = graph.tensor(graph.quantized("Mul", [first, second], result), result)
        scale = np.asarray(first.quantization.scale * second.quantization.scale / result.scale)
        distance.append(differences(tensor, requantized(centred(first) * centred(second), scale, result)))
    check_rare(distance, powers_of_two)


def check_rare(distance: list[NDArray[np.int32]], ties: bool) -> None:
    """Differences must be rare and at most 1. With scales that are powers of two, ties make them more frequent."""
    everything = np.concatenate(distance)
    assert everything.max() <= 1
    assert everything.mean() <= (0.15 if ties else 1e-4)
