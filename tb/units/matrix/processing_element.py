"""Processing element against its model, cycle by cycle."""

import cocotb
import numpy as np

from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

CYCLES = 1500

FORMS = [
    "processing_element",
    "processing_element_ecp5",
    "processing_element_in_logic",
    "processing_element_in_logic_ecp5",
]

LARGEST = 255


def operands(values, form):
    """The payloads of a port for operands, as the element's multiplier takes them."""
    if form == "processing_element_in_logic_ecp5":
        values = abs(values) | (values < 0).astype(int) << OPERAND_WIDTH - 1
    return lane(values, OPERAND_WIDTH)


def lane(values, bits):
    """The payloads of one port."""
    return pack_lanes(values[:, np.newaxis], bits)


if CONFIG.size == 2:  # once, because an element does not depend on the size

    @cocotb.test()
    @cocotb.parametrize(form=FORMS[1:])
    async def every_product(dut, form):
        """Every product of a weight and an activation, without a pause between weights."""
        bench = await Bench.start(dut, form)
        width = CONFIG.partial_sum_width
        factors = np.arange(-LARGEST, LARGEST + 1)
        weight, activation = (side.reshape(-1) for side in np.meshgrid(factors, factors, indexing="ij"))
        first = np.tile(factors == factors[0], len(factors))
        idle = np.zeros(8, np.int64)
        seen = await bench.play(
            {
                # Each weight enters in the cycle in which its predecessor is swapped in.
                "weight_in": operands(np.concatenate([[factors[0]], np.roll(weight, -1), idle]), form),
                "shift_in": lane(np.concatenate([[1], np.roll(first, -1), idle]), 1),
                "swap_in": lane(np.concatenate([[0], first, idle]), 1),
                "activation_in": operands(np.concatenate([[0], activation, idle]), form),
                "partial_sum_in": [0] * (len(weight) + 9),
            },
            ["partial_sum_out"],
        )
        products = unpack_lanes(seen["partial_sum_out"], 1, width, signed=True)[4:, 0][: len(weight)]
        expected = ProcessingElement.compute(activation, weight, np.zeros_like(weight), width)
        assert np.array_equal(products, expected)


@cocotb.test()
@cocotb.parametrize(form=FORMS)
async def random_vectors(dut, form):
    bench = await Bench.start(dut, form)
    rng = random_generator()
    width = CONFIG.partial_sum_width
    activation, weight = rng.integers(-LARGEST, LARGEST + 1, (2, CYCLES))
    extremes = rng.choice([-LARGEST, LARGEST, 0], (2, CYCLES))
    activation, weight = np.where(rng.random((2, CYCLES)) < 0.2, extremes, (activation, weight))
    partial_sum = rng.integers(-(1 << (width - 1)), 1 << (width - 1), CYCLES)
    swap, shift = rng.random((2, CYCLES)) < 0.3
    swap[0] = shift[0] = shift[1] = swap[1] = True  # from then on all registers are initialized

    seen = await bench.play(
        {
            "activation_in": operands(activation, form),
            "weight_in": operands(weight, form),
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
    assert seen["activation_out"][1:] == operands(activation[:-1], form)
    assert seen["weight_out"][2:] == operands(next_weight[1:-1], form)
    assert np.array_equal(values("swap_out", 1, signed=False)[1:], swap[:-1])
    assert np.array_equal(values("shift_out", 1, signed=False)[1:], shift[:-1])
