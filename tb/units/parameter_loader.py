"""Parameter loader: every byte of the rows goes to its place in the parameter memory."""

import cocotb
import numpy as np

from openmxu.arch.legality import PARAMETER_ROWS
from openmxu.rtl.unified_buffer import UnifiedBuffer
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.memories import RowReader
from tb.payloads import unpack_lanes


class Memory(Agent):
    """The write port of a parameter memory: bytes by set, column and place."""

    def __init__(self, bench):
        self.enable, self.address = bench.port("write_enable"), bench.port("write_address")
        self.byte, self.data = bench.port("write_byte"), bench.port("write_data")
        self.content = np.zeros((CONFIG.parameter_sets, CONFIG.size, PARAMETER_ROWS), np.uint8)
        bench.add(self)

    def sample(self):
        if int(self.enable.value):
            number, group = divmod(int(self.address.value), CONFIG.column_groups)
            lanes = unpack_lanes([int(self.data.value)], CONFIG.activation_lanes, 8, signed=False)[0]
            self.content[number, group :: CONFIG.column_groups, int(self.byte.value)] = lanes


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.6])
async def sets_are_loaded(dut, stall):
    bench = await Bench.start(dut, "parameter_loader")
    rng = random_generator()
    rows = rng.integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    memory = Memory(bench)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, stall)
    start, done = bench.port("start"), bench.port("done")
    expected = memory.content.copy()
    for _ in range(12):
        count = int(rng.integers(1, CONFIG.parameter_sets + 1))
        first = int(rng.integers(0, CONFIG.parameter_sets - count + 1))
        row = int(rng.integers(0, CONFIG.unified_buffer_rows - PARAMETER_ROWS * count + 1))
        for name, value in {"unified_buffer": row, "first": first, "count": count}.items():
            bench.port(name).value = value
        start.value = 1
        pulses = 0
        while not pulses:
            await bench.step()
            pulses += int(done.value)
            assert bench.cycle < 50_000
        start.value = 0
        await bench.steps(int(rng.integers(1, 4)))
        assert int(done.value) == 0
        block = rows[row : row + PARAMETER_ROWS * count].reshape(count, PARAMETER_ROWS, CONFIG.size)
        expected[first : first + count] = block.transpose(0, 2, 1)
        assert np.array_equal(memory.content, expected)
