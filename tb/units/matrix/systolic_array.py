"""Systolic array against a matrix product, with tiles that arrive as early and as late as allowed."""

import cocotb
import numpy as np

from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.matrix.systolic_array import SystolicArray
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

TILES = 40


@cocotb.test()
@cocotb.parametrize(
    unit=["systolic_array", "systolic_array_ecp5", "systolic_array_ice40"], pause=[0, 7], bubble=[0.0, 0.5]
)
async def products_with_tiles_on_the_fly(dut, unit, pause, bubble):
    """``pause``: maximum delay of a tile in cycles; ``bubble``: probability that no row enters in a cycle."""
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    size = CONFIG.size
    tiles = rng.integers(-255, 256, (TILES, size, size))
    tiles[0], tiles[1], tiles[2] = 255, -255, 0

    # The cycles in which each tile begins to enter, and in which the row enters that swaps it in.
    begins, swaps = [0], []
    for _ in range(TILES):
        swaps.append(begins[-1] + size + int(rng.integers(0, pause + 1)))
        begins.append(swaps[-1] + int(rng.integers(0, pause + 1)))
    cycles = swaps[-1] + 4 * size + 8
    last_row = cycles - 2 * size - 4

    rows = rng.integers(-255, 256, (cycles, size))
    rows[rng.random((cycles, size)) < 0.1] = 255
    enters = rng.random(cycles) >= bubble
    enters[swaps] = True
    enters[: swaps[0]] = enters[last_row:] = False
    activations, weights = rng.integers(-256, 256, (2, cycles, size))  # random where unused
    shift = np.zeros((cycles, size), int)
    for cycle in np.flatnonzero(enters):
        activations[cycle + np.arange(size), np.arange(size)] = rows[cycle]
    for begin, tile in zip(begins, tiles, strict=False):
        for index in range(size):
            weights[begin + index + np.arange(size), np.arange(size)] = tile[size - 1 - index]
            shift[begin + index : begin + size, index] = 1

    seen = await bench.play(
        {
            "activations": pack_lanes(activations, OPERAND_WIDTH),
            "weights": pack_lanes(weights, OPERAND_WIDTH),
            "swap": np.isin(np.arange(cycles), swaps).astype(int).tolist(),
            "shift": pack_lanes(shift, 1),
        },
        ["partial_sums"],
    )

    sums = unpack_lanes(seen["partial_sums"], size, CONFIG.partial_sum_width, signed=True)
    latency = SystolicArray.latency(CONFIG)
    used = np.searchsorted(swaps, np.arange(cycles), side="right") - 1
    for cycle in np.flatnonzero(enters):
        got = sums[cycle + latency + np.arange(size), np.arange(size)]
        assert np.array_equal(got, SystolicArray.compute(rows[cycle], tiles[used[cycle]])), (cycle, used[cycle])
