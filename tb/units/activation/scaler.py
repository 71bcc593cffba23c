"""Scaler against ``numerics.fixed_point``: random values and corner cases of float32."""

import cocotb
import numpy as np

from openmxu.arch.numerics import FRACTION_BITS, REQUANTIZED_LIMIT
from openmxu.rtl.activation.scaler import Scaler
from tb.bench import Bench, random_generator
from tb.models.payloads import pack_lanes
from tb.models.scales import random_scales, random_totals

CYCLES = 4000


def corners():
    """Products at the limits of fixed point: exponents around 2**-14 and 2**18, with products that are truncated."""
    totals, scales = [], []
    for mantissa in (1.0, 1.5, 2.0 - 2.0**-23, 1.0 + 2.0**-23):
        for exponent in (*range(-18, -10), *range(14, 22)):
            for total in (1, -1, 3, 2**24 - 1, -(2**31), 2**31 - 1):
                totals.append(total)
                scales.append(np.float32(mantissa * 2.0**exponent / abs(total)))
    return np.array(totals, np.int32), np.array(scales, np.float32)


@cocotb.test()
@cocotb.parametrize(form=["scaler", "scaler_ecp5"])
async def every_product_is_exact(dut, form):
    bench = await Bench.start(dut, form)
    rng = random_generator()
    first_totals, first_scales = corners()
    totals = np.concatenate([first_totals, random_totals(rng, CYCLES)])
    bits = np.concatenate([first_scales.view(np.uint32), random_scales(rng, CYCLES).view(np.uint32)])
    delay = Scaler.scale_delay
    seen = await bench.play(
        {
            "total": pack_lanes(totals[:, np.newaxis], 32) + [0] * delay,
            "scale": [0] * delay + bits.tolist(),
        },
        ["negative", "magnitude"],
    )
    magnitude = np.array(seen["magnitude"][Scaler.latency :], np.int64)
    negative = np.array(seen["negative"][Scaler.latency :], bool)
    got = np.where(negative, -magnitude, magnitude)
    expected = Scaler.compute(totals, bits.view(np.float32))[: len(got)]
    wrong = np.flatnonzero(got != expected)
    assert wrong.size == 0, [(totals[i], bits[i], got[i], expected[i]) for i in wrong[:3]]
    # The corner cases reach both limits.
    assert {0, REQUANTIZED_LIMIT << FRACTION_BITS, 1 << (FRACTION_BITS - 14)} <= set(expected.tolist())
