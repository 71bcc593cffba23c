"""Requantizer against ``numerics.requantize``: random values and the corners of float32."""

import cocotb
import numpy as np

from openmxu.rtl.commands import OutputLayout
from openmxu.rtl.requantizer import Requantizer
from tb.bench import Bench, random_generator
from tb.payloads import pack, pack_lanes, unpack_lanes

CYCLES = 4000

_SUMS = np.array([0, 1, -1, 2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 1, 2**24 + 3, 2**25 + 2, 3 * 2**23], np.int32)
_SCALES = np.array(
    [0.0, -0.0, 1e-45, -1e-40, np.inf, -np.inf, np.nan, 3.4028235e38, 1.17549435e-38, 1.0, -1.0, 0.5, 1.5, 2.0**-24],
    np.float32,
)


def random_operands(rng):
    """Sums, biases and scales: everything from ordinary to absurd."""
    sums = rng.integers(-(2**31), 2**31, CYCLES, np.int64).astype(np.int32)
    small = rng.integers(-(2**18), 2**18, CYCLES, np.int32)
    sums = np.choose(rng.integers(0, 3, CYCLES), [sums, small, rng.choice(_SUMS, CYCLES)]).astype(np.int32)
    biases = np.where(rng.random(CYCLES) < 0.5, 0, rng.integers(-(2**31), 2**31, CYCLES)).astype(np.int32)
    # Scales that bring the sum to the range of the output, powers of two that make ties, corners, and any bits.
    usual = (10.0 ** rng.uniform(-8, 1, CYCLES) * rng.choice([-1, 1], CYCLES)).astype(np.float32)
    ties = np.exp2(-rng.integers(0, 30, CYCLES)).astype(np.float32)
    anything = rng.integers(0, 2**32, CYCLES, np.uint32).view(np.float32)
    kind = rng.choice(4, CYCLES, p=[0.4, 0.3, 0.1, 0.2])
    # Chosen as bits, for a NaN does not survive arithmetic.
    choices = [values.view(np.uint32) for values in (usual, ties, rng.choice(_SCALES, CYCLES), anything)]
    return sums, biases, np.choose(kind, choices).astype(np.uint32).view(np.float32)


@cocotb.test()
async def every_value_is_exact(dut):
    bench = await Bench.start(dut, "requantizer")
    rng = random_generator()
    sums, biases, scales = random_operands(rng)
    byte = rng.integers(0, 4, CYCLES)
    limit = 1 << 17
    wide = rng.random(CYCLES) < 0.3
    zero_point = np.where(wide, rng.integers(-limit, limit, CYCLES), rng.integers(-128, 256, CYCLES))
    minimum = np.where(wide, rng.integers(-limit, limit, CYCLES), rng.choice([-128, 0], CYCLES))
    maximum = np.where(wide, rng.integers(-limit, limit, CYCLES), rng.choice([127, 255], CYCLES))

    lead = Requantizer.latency - Requantizer.output_lead
    formats = [0] * lead + [
        pack(OutputLayout, {"zero_point": zero, "minimum": low, "maximum": high})
        for zero, low, high in zip(zero_point, minimum, maximum, strict=True)
    ]
    tail = [0] * lead

    def lane(values):
        return pack_lanes(np.asarray(values)[:, np.newaxis], 32) + tail

    seen = await bench.play(
        {
            "accumulator": lane(sums),
            "bias": lane(biases),
            "scale": lane(scales.view(np.uint32)),
            "byte": byte.tolist() + tail,
            "output": formats,
        },
        ["value", "sum_byte"],
    )

    count = CYCLES + lead - Requantizer.latency
    got = unpack_lanes(seen["value"][Requantizer.latency :], 1, 18, signed=True)[:, 0]
    expected = np.array(
        [
            Requantizer.compute(sums[i : i + 1], biases[i : i + 1], scales[i : i + 1], *limits)[0]
            for i, limits in enumerate(zip(zero_point, minimum, maximum, strict=True))
        ]
    )
    assert len(got) == count
    wrong = np.flatnonzero(got != expected[:count])
    assert wrong.size == 0, [(sums[i], biases[i], scales[i], got[i], expected[i]) for i in wrong[:3]]
    total = (sums + biases).view(np.uint32)
    assert seen["sum_byte"][Requantizer.latency :] == ((total >> (8 * byte)) & 0xFF)[:count].tolist()
