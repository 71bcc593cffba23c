"""Chains of matrix products to programs: weights, parameters and tensors find places, then instructions follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.emit.memory import ALIGNMENT, check_addresses, parameter_bytes
from openmxu.compiler.emit.schedule import Memory, ScheduledLayer, schedule
from openmxu.compiler.emit.weights import EncodedWeights, encode_weights
from openmxu.compiler.ir.network import Network
from openmxu.compiler.plan.chain import DenseLayer
from openmxu.compiler.plan.segments import LayerShape, Plan, plan_network
from openmxu.program import Program

__all__ = ["compile_dense"]


def compile_dense(network: Network, layers: Sequence[DenseLayer], config: Config, batch: int) -> Program:
    """Compile a chain of matrix products.

    Raises
    ------
    CapacityError
        The configuration's memories are too small.
    """
    (source,), (target,) = network.inputs, network.outputs
    rows = source.host.rows(batch)
    encoded = [encode_weights(layer.weights, config.size) for layer in layers]
    shapes = [
        LayerShape(item.planes, item.planes * len(item.parts), item.tiles, 4 if layer.scale is None else 1)
        for item, layer in zip(encoded, layers, strict=True)
    ]
    plan = plan_network(shapes, rows, config)
    weights, placed = _place_weights(layers, encoded, shapes, plan, config)
    constants, offsets = _parameters(layers, config.size)
    tensors, host_bytes = _place_tensors(plan, shapes, rows, len(constants), config)
    check_addresses(host_bytes, weights.size, config)
    code = schedule(placed, plan, Memory(tensors, offsets), rows, config)
    return Program(
        config=config,
        batch=batch,
        inputs=(source.host.spec,),
        outputs=(target.host.spec,),
        device_inputs=(dataclasses.replace(source.host, offset=tensors[0]),),
        device_outputs=(dataclasses.replace(target.host, offset=tensors[-1]),),
        instructions=code.instructions,
        weights=weights,
        constants=constants,
        constants_offset=0,
        host_bytes=host_bytes,
        multiply_adds=batch * network.multiply_adds,
        layers=network.layers(batch),
        layer_numbers=code.layers,
    )


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


def _parameters(layers: Sequence[DenseLayer], size: int) -> tuple[NDArray[np.uint8], tuple[int, ...]]:
    """The parameter sets of all layers, and the address of each layer's first one."""
    sets = [parameter_bytes(layer.bias, layer.scale, size) for layer in layers]
    ends = np.cumsum([0, *(item.size for item in sets)])
    return np.concatenate(sets), tuple(int(end) for end in ends[:-1])


def _place_tensors(
    plan: Plan, shapes: Sequence[LayerShape], rows: int, offset: int, config: Config
) -> tuple[tuple[int, ...], int]:
    """Addresses of every segment's input and of the output, and the end of it all."""
    sizes = [shapes[segment.first].planes * rows for segment in plan.segments]
    sizes.append(shapes[-1].tiles * rows * shapes[-1].output_rows)
    addresses = []
    for count in sizes:
        offset = -(-offset // ALIGNMENT) * ALIGNMENT
        addresses.append(offset)
        offset += count * config.size
    return tuple(addresses), offset
