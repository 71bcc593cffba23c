"""Array of the lite profile against a matrix product: rows in every cycle, tiles loaded between them."""

import cocotb
import numpy as np

from openmxu.rtl.lite.array import LiteArray
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

TILES = 40
ROWS = 12


def as_stored(operands: np.ndarray, unit: str) -> np.ndarray:
    """Operands in the encoding of the elements: sign and magnitude on iCE40."""
    if unit != "lite_array_ice40":
        return operands
    return abs(operands) | (operands < 0).astype(int) << OPERAND_WIDTH - 1


@cocotb.test()
@cocotb.parametrize(unit=["lite_array", "lite_array_ecp5", "lite_array_ice40"], bubble=[0.0, 0.5])
async def products(dut, unit, bubble):
    """``bubble``: probability that no row enters in a cycle."""
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    size = CONFIG.size
    tiles = rng.integers(-255, 256, (TILES, size, size))
    tiles[0], tiles[1], tiles[2] = 255, -255, 0
    activations, weights, loads, expected = [], [], [], {}
    for tile in tiles:
        for pair in range(size // 2):
            activations.append(rng.integers(-255, 256, size))
            weights.append(as_stored(tile[2 * pair : 2 * pair + 2], unit).reshape(-1))
            loads.append(1 << pair)
        for index in range(ROWS):
            row = rng.integers(-255, 256, size)
            row[rng.random(size) < 0.1] = 255
            enters = rng.random() >= bubble
            # A row may enter in the cycle in which the last rows of the tile are loaded.
            if index or not enters:
                activations.append(row)
                weights.append(as_stored(rng.integers(-255, 256, 2 * size), unit))
                loads.append(0)
            if enters:
                expected[len(activations) - 1] = LiteArray.compute(activations[-1], tile)
    latency = LiteArray.latency(CONFIG)
    for _ in range(latency):
        activations.append(np.zeros(size, int))
        weights.append(np.zeros(2 * size, int))
        loads.append(0)

    seen = await bench.play(
        {
            "activations": pack_lanes(np.array(activations), OPERAND_WIDTH),
            "weights": pack_lanes(np.array(weights), OPERAND_WIDTH),
            "load": loads,
        },
        ["sums"],
    )
    sums = unpack_lanes(seen["sums"], size, CONFIG.partial_sum_width, signed=True)
    for cycle, row in expected.items():
        assert np.array_equal(sums[cycle + latency], row), cycle
