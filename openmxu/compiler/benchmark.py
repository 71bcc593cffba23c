"""Matrix products and convolutions of random numbers, for benches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Convolution, Pooling, Result
from openmxu.compiler.ir.window import Window
from openmxu.compiler.translate import compile_network
from openmxu.program import Program
from openmxu.segments.host_tensor import HostTensor

__all__ = ["conv_input", "conv_network", "gemm", "gemm_input", "gemm_network"]


def gemm_network(m: int, k: int, n: int, *, seed: int = 0) -> Network:
    """A QLinearMatMul of random uint8 inputs and int8 weights, M × K by K × N, with a scale for each column.

    Raises
    ------
    ValueError
        A dimension is less than 1.
    """
    if min(m, k, n) < 1:
        raise ValueError(f"every dimension must be at least 1, not {m} × {k} × {n}")
    random = np.random.default_rng(seed)
    weights = random.integers(-128, 128, (k, n)).astype(np.int16)
    # Sums of k products spread over about 74 · 74 · √k; the scale brings them to the range of a byte.
    scale = (random.uniform(0.5, 1.5, n) * 32 / (74 * 74 * np.sqrt(k))).astype(np.float32)
    layer = Convolution(
        name="gemm",
        sources=("a",),
        target="y",
        weights=np.ascontiguousarray(weights.T)[:, :, np.newaxis, np.newaxis],
        bias=np.zeros(n, np.int32),
        input_signed=False,
        zero_point=int(random.integers(96, 160)),
        result=Result(scale, int(random.integers(96, 160)), 0, 255),
    )
    return Network(
        inputs=(Port(HostTensor("a", "uint8", (k,), k, "uint8"), "a"),),
        outputs=(Port(HostTensor("y", "uint8", (n,), n, "uint8"), "y"),),
        tensors={"a": Tensor(1, 1, k, False), "y": Tensor(1, 1, n, False)},
        operations=(layer,),
        batch=m,
    )


def gemm_input(m: int, k: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Random input rows for :func:`gemm`."""
    return np.random.default_rng(seed + 1).integers(0, 256, (m, k)).astype(np.uint8)


def gemm(m: int, k: int, n: int, config: Config, *, seed: int = 0) -> Program:
    """The program of :func:`gemm_network`: one input ``a``, one output ``y``, both uint8.

    ``evaluate(gemm_network(m, k, n, seed=seed), a)`` is what it must compute.
    """
    return compile_network(gemm_network(m, k, n, seed=seed), config)


def conv_network(
    inputs: int, outputs: int, height: int, width: int, *, kernel: int, stride: int, pool: int, seed: int = 0
) -> Network:
    """A QLinearConv of random uint8 images and int8 weights, with a scale for each channel, and a maximum behind it.

    Parameters
    ----------
    inputs, outputs
        Channels.
    height, width
        Of the image.
    kernel, stride
        Of the convolution, whose padding is ⌊kernel ÷ 2⌋ on every side.
    pool
        Of each window of ``pool`` × ``pool`` results the maximum stays; 1 for no pooling.

    Raises
    ------
    ValueError
        A number is less than 1, or no output is left.
    """
    if min(inputs, outputs, height, width, kernel, stride, pool) < 1:
        raise ValueError("channels, dimensions, kernel, stride and pool must be at least 1")
    random = np.random.default_rng(seed)
    products = inputs * kernel * kernel
    pad = kernel // 2
    window = Window(kernel, kernel, stride, stride, top=pad, left=pad, bottom=pad, right=pad)
    pooling = Window(pool, pool, pool, pool)
    sums = window.outputs(height, width)
    results = pooling.outputs(*sums)
    if min(*sums, *results) < 1:
        raise ValueError(f"nothing is left of {height} × {width} by a kernel of {kernel} and pooling of {pool}")
    convolution = Convolution(
        name="conv",
        sources=("x",),
        target="y" if pool == 1 else "sums",
        weights=random.integers(-128, 128, (outputs, inputs, kernel, kernel)).astype(np.int16),
        bias=random.integers(-10_000, 10_001, outputs).astype(np.int32),
        window=window,
        input_signed=False,
        zero_point=int(random.integers(96, 160)),
        result=Result(
            (random.uniform(0.5, 1.5, outputs) * 32 / (74 * 74 * np.sqrt(products))).astype(np.float32),
            int(random.integers(96, 160)),
            0,
            255,
        ),
    )
    maximum = Pooling(
        name="pool",
        sources=("sums",),
        target="y",
        window=pooling,
        maximum=True,
        input_signed=False,
        result=Result(np.ones((), np.float32), 0, 0, 255),
    )
    return Network(
        inputs=(Port(HostTensor("x", "uint8", (inputs, height, width), inputs, "uint8", channels_first=True), "x"),),
        outputs=(Port(HostTensor("y", "uint8", (outputs, *results), outputs, "uint8", channels_first=True), "y"),),
        tensors={
            "x": Tensor(height, width, inputs, False),
            "sums": Tensor(*sums, outputs, False),
            "y": Tensor(*results, outputs, False),
        },
        operations=(convolution,) if pool == 1 else (convolution, maximum),
        batch=1,
    )


def conv_input(inputs: int, height: int, width: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """A random image for :func:`conv_network`."""
    return np.random.default_rng(seed + 1).integers(0, 256, (1, inputs, height, width)).astype(np.uint8)
