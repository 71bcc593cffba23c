"""Systolic data setup against ``numerics.operand``."""

import cocotb
import numpy as np

from openmxu.arch.numerics import operand
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack, pack_lanes, unpack_lanes

CYCLES = 800
LATENCY = 1


@cocotb.test()
async def operands_are_exact_and_skewed(dut):
    bench = await Bench.start(dut, "systolic_data_setup")
    rng = random_generator()
    size = CONFIG.size
    rows = rng.integers(0, 256, (CYCLES, size), np.uint8)
    is_signed = rng.random(CYCLES) < 0.5
    zero_point = np.where(is_signed, rng.integers(-128, 128, CYCLES), rng.integers(0, 256, CYCLES))
    zero = rng.random(CYCLES) < 0.3
    swap = rng.random(CYCLES) < 0.2
    formats = [
        pack(OperandFormat, {"zero_point": zero, "is_signed": flag})
        for zero, flag in zip(zero_point, is_signed, strict=True)
    ]
    seen = await bench.play(
        {
            "row": pack_lanes(rows, 8),
            "format": formats,
            "zero": zero.astype(int).tolist(),
            "swap_in": swap.astype(int).tolist(),
        },
        ["activations", "swap_out"],
    )

    expected = np.stack([operand(rows[cycle], zero_point[cycle], bool(is_signed[cycle])) for cycle in range(CYCLES)])
    expected[zero] = 0
    activations = unpack_lanes(seen["activations"], size, OPERAND_WIDTH, signed=True)
    swaps = unpack_lanes(seen["swap_out"], 1, 1, signed=False)[:, 0]
    assert np.array_equal(swaps[LATENCY:], swap[: CYCLES - LATENCY])
    for lane in range(size):
        delay = LATENCY + lane
        assert np.array_equal(activations[delay:, lane], expected[: CYCLES - delay, lane]), lane
