"""Random chains of layers, and their execution on the interpreter."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.compiler import compile_network, evaluate
from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Convolution, Result
from openmxu.segments.host_tensor import HostTensor

WEIGHT_RANGES = ((-128, 127), (0, 255), (-10, 3), (-255, 255), (-255, 0))


def random_network(random: np.random.Generator, dimensions: tuple[int, ...]) -> Network:
    """Layers of the given widths with random types, zero points, limits and output format."""
    signed = first_signed = bool(random.integers(2))
    layers = []
    names = ["x", *(f"hidden{index}" for index in range(len(dimensions) - 2)), "y"]
    tensors = {"x": Tensor(1, 1, dimensions[0], signed)}
    for index, (inputs, outputs) in enumerate(itertools.pairwise(dimensions)):
        low, high = WEIGHT_RANGES[random.integers(len(WEIGHT_RANGES))]
        last = index == len(dimensions) - 2
        input_low = -128 if signed else 0
        output_signed = bool(random.integers(2))
        output_low = -128 if output_signed else 0
        limits = [output_low, output_low + 255]
        if random.integers(2):
            limits = sorted(int(limit) for limit in random.integers(output_low, output_low + 256, 2))
        scale = (random.uniform(0.2, 2, outputs) * 60 / (5000 * np.sqrt(inputs))).astype(np.float32)
        weights = random.integers(low, high + 1, (inputs, outputs)).astype(np.int16)
        result = Result(scale, int(random.integers(output_low, output_low + 256)), *limits)
        layers.append(
            Convolution(
                name=f"layer{index}",
                sources=(names[index],),
                target=names[index + 1],
                weights=weights.T.reshape(outputs, inputs, 1, 1),
                bias=random.integers(-5000, 5001, outputs).astype(np.int32),
                input_signed=signed,
                zero_point=int(random.integers(input_low, input_low + 256)),
                result=None if last and random.integers(2) else result,
            )
        )
        item = 4 if layers[-1].result is None else 1
        tensors[names[index + 1]] = Tensor(1, 1, outputs, output_signed, item)
        signed = output_signed
    output = "int32" if layers[-1].result is None else "int8" if signed else "uint8"
    source = "int8" if first_signed else "uint8"
    return Network(
        inputs=(Port(HostTensor("x", source, (dimensions[0],), dimensions[0], source), "x"),),
        outputs=(Port(HostTensor("y", output, (dimensions[-1],), dimensions[-1], output), "y"),),
        tensors=tensors,
        operations=tuple(layers),
    )


def random_rows(random: np.random.Generator, network: Network, rows: int) -> NDArray[np.integer]:
    """A random input of ``network``."""
    source = network.inputs[0].host
    limits = np.iinfo(source.dtype)
    return random.integers(limits.min, limits.max + 1, (rows, *source.shape)).astype(source.dtype)


def differing(network: Network, config: openmxu.Config, rows: NDArray[np.integer]) -> int:
    """Number of outputs that differ between the definition and the compiled program on the interpreter."""
    program = compile_network(network, config, len(rows))
    with openmxu.open_device("interpreter", config) as device:
        result = program.run(device, rows)["y"]
    expected = evaluate(network, rows)
    assert result.shape == expected.shape
    return int((result != expected).sum())
