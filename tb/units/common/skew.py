"""Skew: lane i is delayed by i cycles."""

import cocotb
import numpy as np

from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

CYCLES = 300


@cocotb.test()
async def delays_every_lane(dut):
    bench = await Bench.start(dut, "skew")
    lanes = random_generator().integers(-256, 256, (CYCLES, CONFIG.size))
    seen = await bench.play({"straight": pack_lanes(lanes, OPERAND_WIDTH)}, ["skewed"])
    skewed = unpack_lanes(seen["skewed"], CONFIG.size, OPERAND_WIDTH, signed=True)
    for lane in range(CONFIG.size):
        assert np.array_equal(skewed[lane:, lane], lanes[: CYCLES - lane, lane]), lane
