"""Accumulators of any value, and rows far apart in host memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.isa import OutputFormat, Pooling, Register, format_named
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.instructions import set_register
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["check_strides", "pooled_bits"]

_STRIDE_BITS = 31

_STRIDES = 150
"""Number of random strides, in addition to the powers of two."""


def pooled_bits(config: Config, seed: int) -> Case:
    """Maxima and sums of pairs of accumulators that differ in one bit; every bit, with the larger one first or second.

    An accumulator becomes the number v if its input row has -(v >> 15) and the lower 15 bits of v as int16, and the
    weights are -2**15 and 1.
    """
    rng = np.random.default_rng(seed)
    size = config.size
    values = rng.integers(1 - (1 << 29), 1 << 29, 60)
    others = values ^ (1 << np.arange(60) % 29)
    numbers = np.stack([values, others], axis=1).reshape(-1)
    inputs = np.zeros((len(numbers), 2, size), np.uint8)
    for column, words in enumerate((-(numbers >> 15), numbers & 0x7FFF)):
        inputs[:, :, column] = words.astype("<i2").view(np.uint8).reshape(-1, 2)
    tiles = np.zeros((2, size, size), np.uint8)
    tiles[1, 0] = 0x80
    tiles[0, 1] = 1

    count = min(config.accumulator_rows, config.unified_buffer_rows // 4) // 2 * 2
    starts = range(0, len(numbers) - count + 1, count)
    program = [
        set_register(Register.WEIGHT_FORMAT, wide=1),
        set_register(Register.POOLING_PLANE, height=1, width=count, output_width=count // 2),
        set_register(Register.POOLING_WINDOW, height=1, width=2, stride_y=1, stride_x=2),
        format_named("read_weights")(tiles=2),
    ]
    host = inputs.size
    for start in starts:
        program += [
            format_named("read_host_memory")(unified_buffer=0, rows=2 * count, host=start * 2 * size),
            format_named("matrixmultiply")(rows=count, next_tile=not start, wide_weights=not start, wide_input=1),
        ]
        for pooling in (Pooling.MAX, Pooling.AVERAGE):
            program += [
                format_named("activate")(
                    unified_buffer=2 * count, rows=count // 2, pooling=pooling, output=OutputFormat.INT32
                ),
                format_named("write_host_memory")(unified_buffer=2 * count, rows=2 * count, host=host),
            ]
            host += 2 * count * size
    memory = np.concatenate([inputs.reshape(-1), np.zeros(host - inputs.size, np.uint8)])
    return Case(config, (*program, HALT), memory, tiles.reshape(-1), seed)


def check_strides(config: Config, options: Mapping[str, object]) -> None:
    """Alternate transfers, with each bit of the stride alone and random strides: check where the second row is.

    Raises
    ------
    AssertionError
        The second row is elsewhere.
    """
    rng = np.random.default_rng(1)
    size, step = config.size, config.host_alignment
    single = [1 << bit for bit in range(9, _STRIDE_BITS)]
    shifts = rng.integers(_STRIDE_BITS - 9, size=_STRIDES) * rng.integers(2, size=_STRIDES)
    anything = (rng.integers((1 << _STRIDE_BITS) - 512, size=_STRIDES) >> shifts) + 512
    # Pages that are never accessed take no memory.
    host, weights = np.zeros((1 << _STRIDE_BITS) + 1024, np.uint8), np.zeros(64, np.uint8)
    read, write = (format_named(f"{name}_host_memory_alternate") for name in ("read", "write"))
    with VerilatedDevice(config, **options) as device:
        for stride in (int(stride) // step * step for stride in (*single, *anything)):
            rows = rng.integers(1, 256, (2, size), np.uint8)
            host[:size], host[stride : stride + size] = rows
            program = [set_register(Register.HOST_STRIDE, stride=stride), read(rows=2), write(rows=2, host=256), HALT]
            device.execute(program, host, weights)
            written = host[256 : 256 + size], host[256 + stride : 256 + stride + size]
            assert np.array_equal(written, rows), f"stride {stride:#x}"
