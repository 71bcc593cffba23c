"""Weight shifter: weights reach the edge of the array with the timing that the systolic array requires."""

import random

import cocotb
import numpy as np

from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.weights.weight_shifter import WeightShifter
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.models.payloads import pack_lanes, unpack_lanes

TILES = 30
LEAD = WeightShifter.latency
"""Cycles from the grant of a row until its lane 0 is at the edge of the array: unified buffer and data setup."""


class FIFO(Agent):
    """The read side of a weight FIFO that fills slowly, and a monitor of the shifter's outputs."""

    def __init__(self, bench, tiles, scarcity, laziness, transposed=None):
        self.transposed = [0] * len(tiles) if transposed is None else transposed
        stored = [tile.T if turned else tile for tile, turned in zip(tiles, self.transposed, strict=True)]
        self.bench, self.tiles = bench, [pack_lanes(tile, OPERAND_WIDTH) for tile in stored]
        self.scarcity, self.laziness = scarcity, laziness
        names = ("tiles", "read_data", "take", "discard", "read_enable", "read_row", "drop", "loaded")
        self.ports = {name: bench.port(name) for name in names}
        self.ports["transposed"] = bench.optional_port("transposed")
        self.shifting = bench.port("shifting")
        self.weights, self.shift = [], []
        self.weights_port, self.shift_port = bench.port("weights"), bench.port("shift")
        self.arrived = self.left = 0
        self.row = None
        self.take_times, self.shifting_times = [], []
        self.wants = False
        self.ports["discard"].value = 0
        bench.add(self)

    def value(self, name):
        return int(self.ports[name].value)

    def sample(self):
        self.weights.append(int(self.weights_port.value))
        self.shift.append(int(self.shift_port.value))
        self.row = self.tiles[self.left][self.value("read_row")] if self.value("read_enable") else None
        if int(self.shifting.value):
            self.shifting_times.append(self.bench.cycle)
        if self.value("take"):
            assert self.value("loaded"), f"took a tile that is not ready in cycle {self.bench.cycle}"
            self.take_times.append(self.bench.cycle)
        if self.value("drop"):
            self.left += 1

    def drive(self):
        if self.arrived < len(self.tiles) and self.arrived - self.left < CONFIG.weight_fifo_tiles:
            self.arrived += random.random() >= self.scarcity
        self.ports["tiles"].value = self.arrived - self.left
        oldest = self.transposed[self.left] if self.left < self.arrived else random.randrange(2)
        self.ports["transposed"].value = int(oldest)
        width = OPERAND_WIDTH * CONFIG.size
        self.ports["read_data"].value = random.getrandbits(width) if self.row is None else self.row


@cocotb.test()
@cocotb.parametrize(scarcity=[0.0, 0.95], laziness=[0.0, 0.9])
async def tiles_reach_the_array(dut, scarcity, laziness):
    bench = await Bench.start(dut, "weight_shifter")
    size = CONFIG.size
    tiles = random_generator().integers(-256, 256, (TILES, size, size))
    transposed = np.array([random.random() < 0.6 and loads_weights(CONFIG) for _ in range(TILES)])
    fifo = FIFO(bench, tiles, scarcity, laziness, transposed)
    take = fifo.ports["take"]
    take.value = 0
    swaps = []
    while len(swaps) < TILES:
        await bench.step()
        # `loaded` does not depend on `take`, so its value in this cycle is known once the registers have settled.
        await cocotb.triggers.ReadOnly()
        ready = fifo.value("loaded")
        await cocotb.triggers.FallingEdge(dut.clk)
        take.value = takes = int(bool(ready) and random.random() >= laziness)
        if takes:
            swaps.append(bench.cycle)
        assert bench.cycle < 20_000
    await bench.step()
    take.value = 0
    await bench.steps(3 * size + 8)

    assert fifo.take_times == swaps
    assert fifo.left == TILES
    weights = unpack_lanes(fifo.weights, size, OPERAND_WIDTH, signed=True)
    shift = unpack_lanes(fifo.shift, size, 1, signed=False)
    # Row 0 of the array shifts in all S cycles of a tile, so each tile begins to enter where these cycles begin.
    (begins,) = np.nonzero(np.diff(np.concatenate([[0], shift[:, 0]])) == 1)
    entered = shift[:, 0].sum()
    assert entered == TILES * size
    if scarcity == laziness == 0:
        # Tiles follow each other without a gap, so all of them are one run, which is cut into tiles below.
        assert np.diff(swaps).max() == size
    starts = [cycle for run in begins for cycle in _tile_starts(shift[:, 0], run, size)]
    assert len(starts) == TILES
    for number, (start, tile) in enumerate(zip(starts, tiles, strict=True)):
        for index in range(size):
            lanes = np.arange(size)
            assert np.array_equal(weights[start + index + lanes, lanes], tile[size - 1 - index]), (number, index)
            expected = np.zeros(size, int)
            expected[index:] = 1
            assert np.array_equal(shift[start : start + size, index], expected), (number, index)
        # Rules of the array: a tile is complete when its swapping row enters, and its successor begins no earlier.
        assert swaps[number] + LEAD >= start + size
        if number + 1 < TILES:
            assert starts[number + 1] >= swaps[number] + LEAD
            assert starts[number + 1] >= swaps[number] + WeightShifter.latency
    turned = np.array(starts)[transposed]
    distances = np.diff(turned)
    assert np.all((distances == size) | (distances >= 2 * size))


def _tile_starts(shift, run, size):
    """First cycles of the tiles in a run of cycles in which row 0 shifts."""
    end = run
    while end < len(shift) and shift[end]:
        end += 1
    assert (end - run) % size == 0
    return range(run, end, size)


@cocotb.test()
async def discard_drops_a_loaded_tile(dut):
    bench = await Bench.start(dut, "weight_shifter")
    size = CONFIG.size
    tiles = random_generator().integers(-256, 256, (3, size, size))
    fifo = FIFO(bench, tiles, 0.0, 0.0)
    fifo.ports["take"].value = 0
    await bench.steps(2 * size + 4)
    assert fifo.value("loaded") == 1
    assert fifo.left == 1
    fifo.ports["discard"].value = 1
    await bench.until(lambda: fifo.left == 3)
    await bench.steps(3)
    assert fifo.value("loaded") == 0
