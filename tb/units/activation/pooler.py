"""Pooler: interleaved windows of several columns become maxima and sums."""

import cocotb
import numpy as np

from openmxu.rtl.activation.pooler import Pooler, PoolOperation
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

WINDOWS = 150

_EDGES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**30, -(2**30)], np.int32)


def random_window(rng):
    """Values (positions, columns): random ones and those of the largest magnitudes."""
    shape = (int(rng.choice([1, 1, 2, rng.integers(1, 10)])), CONFIG.column_groups)
    values = rng.integers(-(2**31), 2**31, shape, np.int64).astype(np.int32)
    return np.where(rng.random(shape) < 0.3, rng.choice(_EDGES, shape), values).astype(np.int32)


@cocotb.test()
@cocotb.parametrize(form=["pooler", "pooler_ecp5"], idle=[0.0, 0.5])
async def windows_are_pooled(dut, form, idle):
    bench = await Bench.start(dut, form)
    rng = random_generator()
    groups = CONFIG.column_groups
    inputs = {name: [] for name in ("enable", "operation", "value")}
    expected = []

    def drive(enable, operation, value, pooled=None):
        row = (enable, operation.value, pack_lanes(np.array([[value]]), 32)[0])
        for port, item in zip(inputs.values(), row, strict=True):
            port.append(item)
        expected.append(pooled)

    def pause():
        while rng.random() < idle:
            drive(0, PoolOperation(int(rng.integers(0, 4))), int(rng.choice(_EDGES)))

    for _ in range(WINDOWS):
        operation = PoolOperation.MAXIMUM if rng.random() < 0.5 else PoolOperation.SUM
        window = random_window(rng)
        for position in range(len(window)):
            pooled = Pooler.compute(window[np.newaxis, : position + 1], operation)[0]
            for group in range(groups):
                pause()
                first = PoolOperation.FIRST if position == 0 else operation
                drive(1, first, int(window[position, group]), int(pooled[group]))
        # The result is kept and can be read again.
        for group in list(range(groups)) * int(rng.integers(0, 3)):
            pause()
            drive(1, PoolOperation.HOLD, int(rng.choice(_EDGES)), int(pooled[group]))

    seen = await bench.play(inputs, ["pooled"])
    got = unpack_lanes(seen["pooled"][Pooler.latency :], 1, 32, signed=True)[:, 0].tolist()
    wanted = expected[: len(got)]
    assert [value for value, want in zip(got, wanted, strict=True) if want is not None] == [
        want for want in wanted if want is not None
    ]
