"""Small fixed networks on images."""

from __future__ import annotations

import numpy as np

from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Combination, Convolution, Operation, Result
from openmxu.compiler.ir.window import Window
from openmxu.segments.host_tensor import HostTensor

__all__ = ["SAME", "addition", "convolution", "image_network", "residual_block"]

SAME = Window(3, 3, top=1, left=1, bottom=1, right=1)
RESULT = Result(np.float32(0.004), 0, 0, 255)


def convolution(source: str, target: str, inputs: int, outputs: int, window: Window) -> Convolution:
    weights = np.random.default_rng(0).integers(-128, 128, (outputs, inputs, window.height, window.width))
    bias = np.zeros(outputs, np.int32)
    return Convolution(
        name=target,
        sources=(source,),
        target=target,
        weights=weights.astype(np.int16),
        bias=bias,
        input_signed=False,
        zero_point=3,
        result=RESULT,
        window=window,
    )


def addition(sources: tuple[str, str], target: str, zero_points: tuple[int, int] = (0, 0)) -> Combination:
    return Combination(
        name=target,
        sources=sources,
        target=target,
        result=RESULT,
        multiplies=False,
        input_signed=(False, False),
        zero_points=zero_points,
        second_scale=np.float32(0.5),
    )


def image_network(operations: list[Operation], tensors: dict[str, Tensor]) -> Network:
    """A network of uint8 tensors from ``x`` to all that no operation reads."""
    read = {name for operation in operations for name in operation.sources}
    results = [operation.target for operation in operations if operation.target not in read]

    def port(name: str) -> Port:
        tensor = tensors[name]
        shape = (tensor.channels, tensor.height, tensor.width)
        return Port(HostTensor(name, "uint8", shape, tensor.channels, "uint8", channels_first=True), name)

    outputs = tuple(port(name) for name in results)
    return Network(inputs=(port("x"),), outputs=outputs, tensors=tensors, operations=tuple(operations))


def residual_block() -> Network:
    """Two convolutions of 16 × 16 positions and four channels, and the sum of their result and their input."""
    operations = [
        convolution("x", "a", 4, 4, SAME),
        convolution("a", "b", 4, 4, SAME),
        addition(("b", "x"), "y", zero_points=(0, 3)),
    ]
    return image_network(operations, dict.fromkeys(["x", "a", "b", "y"], Tensor(16, 16, 4, False)))
