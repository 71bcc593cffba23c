"""Quantized ONNX graphs on images, and their comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

import openmxu
from scripts.random_models import make_model, random_bytes, reference

CHANNELS, HEIGHT, WIDTH = 6, 9, 11
BATCH = 3


def image_model(
    nodes: Sequence[onnx.NodeProto],
    values: Mapping[str, np.ndarray],
    shape: Sequence[int] = (CHANNELS, HEIGHT, WIDTH),
    types: tuple[str, str] = ("uint8", "uint8"),
    more: Sequence[tuple[str, str, tuple[int, ...]]] = (),
    dimensions: int | None = None,
) -> onnx.ModelProto:
    """A model with the inputs ``x`` and ``more``, the output ``y``, and those constants that its nodes use.

    ``y`` has open lengths in all ``dimensions``, by default as many as ``x`` (without the batch).
    """
    used = {name for item in nodes for name in item.input}
    constants = {name: array for name, array in values.items() if name in used}
    lengths = tuple(f"length{axis}" for axis in range(dimensions or len(shape)))
    return make_model(nodes, constants, [("x", types[0], tuple(shape)), *more], ("y", types[1], lengths))


def parameters(random: np.random.Generator, dtype: str = "uint8") -> dict[str, np.ndarray]:
    """Quantization of ``x``, a hidden tensor ``h`` and ``y``; kernels ``w`` and ``v``; and bias ``b``."""
    return {
        "x_scale": np.float32(0.013),
        "x_zero_point": random_bytes(random, dtype, ()),
        "w": random_bytes(random, "int8", (10, CHANNELS, 3, 3)),
        "w_scale": random.uniform(0.004, 0.02, 10).astype(np.float32),
        "w_zero_point": np.zeros(10, np.int8),
        "b": random.integers(-20_000, 20_000, 10).astype(np.int32),
        "h_scale": np.float32(0.31),
        "h_zero_point": random_bytes(random, dtype, ()),
        "v": random_bytes(random, "int8", (7, 10, 1, 1)),
        "v_scale": np.float32(0.011),
        "v_zero_point": np.int8(0),
        "y_scale": np.float32(0.83),
        "y_zero_point": random_bytes(random, dtype, ()),
    }


def differing(
    proto: onnx.ModelProto,
    inputs: np.ndarray | Mapping[str, np.ndarray],
    config: openmxu.Config,
    batch: int | None = None,
    optimize: bool = True,
) -> int:
    """The largest difference between the compiled model on the interpreter and ONNX Runtime."""
    program = openmxu.compile(proto, config, batch=batch)
    with openmxu.open_device("interpreter", config) as device:
        (result,) = program.run(device, inputs).values()
    expected = reference(proto, inputs, optimize)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert expected.size > 0
    return int(np.abs(result.astype(np.float64) - expected).max())
