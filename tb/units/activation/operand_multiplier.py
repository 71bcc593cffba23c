"""Operand multiplier: products wrap to 32 bits."""

import cocotb
import numpy as np

from openmxu.rtl.activation.operand_multiplier import ELEMENT_WIDTH, OperandMultiplier
from tb.bench import Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

CYCLES = 3000

_TOTALS = [0, 1, -1, 2**31 - 1, -(2**31), 2**16, 2**17 - 1, 2**17, -(2**17), -(2**17) - 1, 0x55555555, -0x55555556]
_ELEMENTS = [0, 1, -1, 65535, -65535, 32767, -32768, 255, -255]


@cocotb.test()
@cocotb.parametrize(form=["operand_multiplier", "operand_multiplier_ecp5"])
async def products_wrap(dut, form):
    bench = await Bench.start(dut, form)
    rng = random_generator()
    corners = np.array([(total, element) for total in _TOTALS for element in _ELEMENTS])
    totals = np.concatenate([corners[:, 0], rng.integers(-(2**31), 2**31, CYCLES)])
    factors = np.concatenate([corners[:, 1], rng.integers(-65535, 65536, CYCLES)])
    seen = await bench.play(
        {
            "total": pack_lanes(totals[:, np.newaxis], 32),
            "element": pack_lanes(factors[:, np.newaxis], ELEMENT_WIDTH),
        },
        ["product"],
    )
    got = unpack_lanes(seen["product"][OperandMultiplier.latency :], 1, 32, signed=True)[:, 0]
    expected = OperandMultiplier.compute(totals, factors)[: len(got)]
    assert np.array_equal(got, expected)
