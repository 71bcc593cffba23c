"""Processing element against its model, cycle by cycle."""

import cocotb
import numpy as np

from openmxu.rtl.processing_element import OPERAND_WIDTH, ProcessingElement
from tb.bench import CONFIG, Bench, random_generator
from tb.payloads import pack_lanes, unpack_lanes

CYCLES = 1500


@cocotb.test()
async def random_vectors(dut):
    bench = await Bench.start(dut, "processing_element")
    rng = random_generator()
    width = CONFIG.partial_sum_width
    limit = 1 << (OPERAND_WIDTH - 1)
    activation, weight = rng.integers(-limit, limit, (2, CYCLES))
    extremes = rng.choice([-limit, limit - 1, -255, 255, 0], (2, CYCLES))
    activation, weight = np.where(rng.random((2, CYCLES)) < 0.2, extremes, (activation, weight))
    partial_sum = rng.integers(-(1 << (width - 1)), 1 << (width - 1), CYCLES)
    swap, shift = rng.random((2, CYCLES)) < 0.3
    swap[0] = shift[0] = shift[1] = swap[1] = True  # from then on no register holds what nobody wrote

    def lane(values, bits):
        return pack_lanes(values[:, np.newaxis], bits)

    seen = await bench.play(
        {
            "activation_in": lane(activation, OPERAND_WIDTH),
            "weight_in": lane(weight, OPERAND_WIDTH),
            "partial_sum_in": lane(partial_sum, width),
            "swap_in": lane(swap, 1),
            "shift_in": lane(shift, 1),
        },
        ["activation_out", "weight_out", "partial_sum_out", "swap_out", "shift_out"],
    )

    next_weight, used = np.zeros((2, CYCLES), np.int64)  # from the next cycle on
    next_weight[0] = weight[0]
    for cycle in range(1, CYCLES):
        used[cycle] = next_weight[cycle - 1] if swap[cycle] else used[cycle - 1]
        next_weight[cycle] = weight[cycle] if shift[cycle] else next_weight[cycle - 1]
    expected = ProcessingElement.compute(activation[:-2], used[:-2], partial_sum[2:], width)

    def values(name, bits, *, signed=True):
        return unpack_lanes(seen[name], 1, bits, signed=signed)[:, 0]

    assert np.array_equal(values("partial_sum_out", width)[5:], expected[2:-1])
    assert np.array_equal(values("activation_out", OPERAND_WIDTH)[1:], activation[:-1])
    assert np.array_equal(values("weight_out", OPERAND_WIDTH)[2:], next_weight[1:-1])
    assert np.array_equal(values("swap_out", 1, signed=False)[1:], swap[:-1])
    assert np.array_equal(values("shift_out", 1, signed=False)[1:], shift[:-1])
