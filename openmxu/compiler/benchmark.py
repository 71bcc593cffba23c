"""Matrix products as programs, for benches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.compiler.network import DenseLayer, Network
from openmxu.compiler.translate import compile_network
from openmxu.host_tensor import HostTensor
from openmxu.program import Program

__all__ = ["gemm", "gemm_input", "gemm_network"]


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
    layer = DenseLayer(
        name="gemm",
        weights=weights,
        bias=np.zeros(n, np.int32),
        scale=scale,
        input_signed=False,
        input_zero_point=int(random.integers(96, 160)),
        zero_point=int(random.integers(96, 160)),
    )
    return Network(
        HostTensor("a", "uint8", (k,), k, "uint8"), HostTensor("y", "uint8", (n,), n, "uint8"), (layer,), batch=m
    )


def gemm_input(m: int, k: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Random input rows for :func:`gemm`."""
    return np.random.default_rng(seed + 1).integers(0, 256, (m, k)).astype(np.uint8)


def gemm(m: int, k: int, n: int, config: Config, *, seed: int = 0) -> Program:
    """The program of :func:`gemm_network`: one input ``a``, one output ``y``, both uint8.

    ``evaluate(gemm_network(m, k, n, seed=seed), a)`` is what it must compute.
    """
    return compile_network(gemm_network(m, k, n, seed=seed), config)
