"""Networks to programs: weights, parameters and tensors find their places, then instructions are scheduled."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.errors import CapacityError, ModelError
from openmxu.compiler.network import DenseLayer, Network
from openmxu.compiler.plan import LayerShape, Plan, plan_network
from openmxu.compiler.schedule import Memory, ScheduledLayer, schedule
from openmxu.compiler.weights import EncodedWeights, encode_weights
from openmxu.program import Program

__all__ = ["DEFAULT_BATCH", "compile_network"]

DEFAULT_BATCH = 64
"""Batch elements of one execution where neither the model nor the caller says."""

_ALIGNMENT = 64
"""Bytes that tensors in host memory begin at multiples of: the widest beat."""


def compile_network(network: Network, config: Config, batch: int | None = None) -> Program:
    """Compile a network.

    Parameters
    ----------
    network
        A chain of layers.
    config
        The configuration to run on.
    batch
        Batch elements of one execution; the network's own, or :data:`DEFAULT_BATCH`, where it is ``None``.

    Raises
    ------
    CapacityError
        The configuration's memories are too small.
    ModelError, TypeError, ValueError
        Layers do not fit each other; the batch is no positive int.
    """
    batch = _batch(network, batch)
    _check_chain(network.layers)
    rows = network.input.rows(batch)
    encoded = [encode_weights(layer.weights, config.size) for layer in network.layers]
    shapes = [
        LayerShape(item.planes, item.planes * len(item.parts), item.tiles, 4 if layer.scale is None else 1)
        for item, layer in zip(encoded, network.layers, strict=True)
    ]
    plan = plan_network(shapes, rows, config)
    weights, layers = _place_weights(network.layers, encoded, shapes, plan, config)
    constants, offsets = _parameters(network.layers, shapes, config.size)
    tensors, host_bytes = _place_tensors(plan, shapes, rows, len(constants), config)
    _check_addresses(host_bytes, weights.size, config)
    return Program(
        config=config,
        batch=batch,
        inputs=(dataclasses.replace(network.input, offset=tensors[0]),),
        outputs=(dataclasses.replace(network.output, offset=tensors[-1]),),
        instructions=schedule(layers, plan, Memory(tensors, offsets), rows, config),
        weights=weights,
        constants=constants,
        constants_offset=0,
        host_bytes=host_bytes,
        multiply_adds=rows * sum(layer.weights.size for layer in network.layers),
    )


def _batch(network: Network, batch: int | None) -> int:
    if batch is None:
        return network.batch or DEFAULT_BATCH
    if not isinstance(batch, int) or isinstance(batch, bool):
        raise TypeError(f"batch must be an int, not {batch!r}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch}")
    return batch


def _check_chain(layers: Sequence[DenseLayer]) -> None:
    for layer, following in itertools.pairwise(layers):
        if layer.scale is None or layer.outputs != following.inputs:
            raise ModelError(f"node {following.name!r}: its input is not the output of {layer.name!r}")


def _place_weights(
    layers: Sequence[DenseLayer],
    encoded: Sequence[EncodedWeights],
    shapes: Sequence[LayerShape],
    plan: Plan,
    config: Config,
) -> tuple[NDArray[np.uint8], list[ScheduledLayer]]:
    """Weight memory, tiles in the order of use."""
    tiles: list[NDArray[np.uint8]] = []
    placed = []
    for segment in plan.segments:
        for index in range(segment.first, segment.stop):
            placed.append(ScheduledLayer(layers[index], shapes[index], encoded[index].format, len(tiles)))
            tiles += _tiles_in_order(encoded[index], segment.groups[index - segment.first])
    return np.concatenate([tile.reshape(-1) for tile in tiles]), placed


def _tiles_in_order(weights: EncodedWeights, groups: Sequence[range]) -> Iterator[NDArray[np.uint8]]:
    for group in groups:
        for plane in range(weights.planes):
            for part in range(len(weights.parts)):
                for tile in group:
                    yield weights.tile(part, plane, tile)


def _parameters(
    layers: Sequence[DenseLayer], shapes: Sequence[LayerShape], size: int
) -> tuple[NDArray[np.uint8], tuple[int, ...]]:
    """The parameter sets of all layers, and the address of each layer's first one."""
    sets = []
    addresses = []
    address = 0
    for layer, shape in zip(layers, shapes, strict=True):
        # Column by column the four bytes of the bias, then those of the scale, lowest first; unused columns are 0.
        columns = np.zeros((shape.tiles * size, 8), np.uint8)
        columns[: layer.outputs, :4] = _bytes(layer.bias.astype("<i4"))
        if layer.scale is not None:
            columns[: layer.outputs, 4:] = _bytes(layer.scale.astype("<f4"))
        sets.append(columns.reshape(shape.tiles, size, 8).transpose(0, 2, 1).reshape(-1))
        addresses.append(address)
        address += sets[-1].size
    return np.concatenate(sets), tuple(addresses)


def _bytes(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, 4)


def _place_tensors(
    plan: Plan, shapes: Sequence[LayerShape], rows: int, offset: int, config: Config
) -> tuple[tuple[int, ...], int]:
    """Addresses of every segment's input and of the output, and the end of it all."""
    sizes = [shapes[segment.first].planes * rows for segment in plan.segments]
    sizes.append(shapes[-1].tiles * rows * shapes[-1].output_rows)
    addresses = []
    for count in sizes:
        offset = -(-offset // _ALIGNMENT) * _ALIGNMENT
        addresses.append(offset)
        offset += count * config.size
    return tuple(addresses), offset


def _check_addresses(host_bytes: int, weight_bytes: int, config: Config) -> None:
    for what, size, name in (
        ("host", host_bytes, "host_address_width"),
        ("weight", weight_bytes, "weight_address_width"),
    ):
        width = getattr(config, name)
        if size > 1 << width:
            raise CapacityError(
                f"the program needs {size} bytes of {what} memory, but {name} {width} reaches {1 << width}"
            )
