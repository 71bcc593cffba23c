"""Transposer: tiles come out skewed, and transposed ones turned, however they follow each other."""

import random

import cocotb
import numpy as np

from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.weights.weight_shifter import WeightShifter
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

TILES = 60
LONGEST_GAP = 3 * CONFIG.size
LATENCY = WeightShifter.latency - 1
"""With which the rack has the transposer."""


def schedule(size):
    """For each tile its first cycle and whether it is transposed; and the cycles that no transposed one may follow."""
    tiles, turning = [], set()
    cycle = last_turned = -LONGEST_GAP
    for _ in range(TILES):
        is_transposed = random.random() < 0.6
        start = max(cycle, 0) + random.choice((0, 0, random.randrange(LONGEST_GAP)))
        if is_transposed and start != last_turned + 1:
            start = max(start, last_turned + 1 + size)
        cycle = start + size
        tiles.append((start, is_transposed))
        if is_transposed:
            turning -= set(range(start, cycle))
            last_turned = cycle - 1
            turning |= set(range(cycle, cycle + size - 1))
    return tiles, turning


@cocotb.test()
async def tiles_are_skewed(dut):
    bench = await Bench.start(dut, "transposer")
    size = CONFIG.size
    tiles, turning = schedule(size)
    weights = random_generator().integers(-256, 256, (TILES, size, size))
    cycles = tiles[-1][0] + 2 * size + LATENCY
    straight = random_generator().integers(-256, 256, (cycles + 1, size))
    reads, ends = np.zeros(cycles, int), np.zeros(cycles, int)
    row = random_generator().integers(0, size, cycles)
    for (start, is_transposed), tile in zip(tiles, weights, strict=True):
        straight[start + 1 : start + 1 + size] = tile.T if is_transposed else tile[::-1]
        if is_transposed:
            reads[start : start + size] = 1
            row[start : start + size] = np.arange(size)[::-1]
            ends[start + size - 1] = 1
    inputs = {
        "straight": pack_lanes(straight[:cycles], OPERAND_WIDTH),
        **{name: values.tolist() for name, values in (("reads", reads), ("row", row), ("ends", ends))},
    }
    seen = await bench.play(inputs, ["skewed", "is_turning"])
    skewed = unpack_lanes(seen["skewed"], size, OPERAND_WIDTH, signed=True)
    lanes = np.arange(size)
    for number, ((start, is_transposed), tile) in enumerate(zip(tiles, weights, strict=True)):
        for step in range(size):
            came = skewed[start + step + LATENCY + lanes, lanes]
            assert np.array_equal(came, tile[size - 1 - step]), (number, is_transposed, step)
    said = {cycle for cycle in np.flatnonzero(seen["is_turning"]).tolist() if not reads[cycle]}
    assert said == {cycle for cycle in turning if cycle < cycles and not reads[cycle]}
