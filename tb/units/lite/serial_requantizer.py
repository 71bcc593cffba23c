"""Serial requantizer against the numerics: random values, corner cases of float32, ties, every range of results."""

import cocotb
import numpy as np

from openmxu.rtl.dispatch.commands import OutputLayout
from openmxu.rtl.lite.serial_requantizer import SerialRequantizer
from tb.bench import Agent, Bench, random_generator
from tb.models.payloads import pack
from tb.models.scales import random_scales, random_totals

VALUES = 1500


class Biases(Agent):
    """The bias memory, which is read byte by byte."""

    def __init__(self, bench):
        self.bias = 0
        self._asked = 0
        self._place, self._data = bench.port("bias_byte"), bench.port("bias")
        bench.add(self)

    def sample(self):
        self._asked = int(self._place.value)

    def drive(self):
        self._data.value = (self.bias >> 8 * self._asked) & 0xFF


def aimed_scales(rng, sums):
    """Scales with which sums lead to results in and around the range of the output, many of them next to a tie."""
    wanted = 10.0 ** rng.uniform(-1, 5.5, len(sums))
    wanted = np.where(rng.random(len(sums)) < 0.3, np.floor(rng.integers(0, 300, len(sums))) + 0.5, wanted)
    wanted = np.where(rng.random(len(sums)) < 0.1, 2.0**18 * rng.choice([0.5, 1, 2], len(sums)), wanted)
    scales = (wanted / np.maximum(1, np.abs(sums.astype(float)))).astype(np.float32)
    bits = scales.view(np.uint32).astype(np.int64) + rng.integers(-1, 2, len(sums)) * (rng.random(len(sums)) < 0.3)
    return bits.astype(np.uint32) | (rng.integers(0, 2, len(sums), np.uint32) << np.uint32(31))


@cocotb.test()
async def every_value_is_exact(dut):
    bench = await Bench.start(dut, "serial_requantizer")
    rng = random_generator()
    totals, biases = random_totals(rng, VALUES), random_totals(rng, VALUES)
    biases = np.where(rng.random(VALUES) < 0.5, rng.integers(-10000, 10000, VALUES), biases).astype(np.int32)
    sums = (totals.astype(np.int64) + biases).astype(np.int32)
    aimed = rng.random(VALUES) < 0.6
    scales = np.where(aimed, aimed_scales(rng, sums), random_scales(rng, VALUES).view(np.uint32)).astype(np.uint32)
    limit = 1 << 17
    wide = rng.random(VALUES) < 0.4
    outputs = {
        "zero_point": np.where(wide, rng.integers(-limit, limit, VALUES), rng.integers(-128, 256, VALUES)),
        "minimum": np.where(wide, rng.integers(-limit, limit, VALUES), rng.choice([-128, 0], VALUES)),
        "maximum": np.where(wide, rng.integers(-limit, limit, VALUES), rng.choice([127, 255], VALUES)),
    }
    memory = Biases(bench)
    ports = {name: bench.port(name) for name in ("start", "total", "scale", "output", "active", "bit", "done")}
    longest = 0
    for index in range(VALUES):
        output = {name: int(values[index]) for name, values in outputs.items()}
        memory.bias = int(biases[index]) & 0xFFFFFFFF
        ports["total"].value = int(totals[index]) & 0xFFFFFFFF
        ports["scale"].value = int(scales[index])
        ports["output"].value = pack(OutputLayout, output)
        ports["start"].value = 1
        await bench.steps(1)
        ports["start"].value = 0
        ports["total"].value = int(rng.integers(0, 1 << 32))
        bits, done, cycles = [], False, 1
        while not done:
            assert cycles < SerialRequantizer.cycles
            await bench.steps(1)
            cycles += 1
            done = bool(ports["done"].value)
            if ports["active"].value:
                bits.append(int(ports["bit"].value))
        longest = max(longest, cycles)
        assert len(bits) == 8
        case = slice(index, index + 1)
        expected = SerialRequantizer.compute(totals[case], biases[case], scales[case].view(np.float32), **output)
        got = sum(bit << place for place, bit in enumerate(bits))
        assert got == int(expected[0]) & 0xFF, (totals[index], biases[index], scales[index], output, got, expected)
    assert longest > SerialRequantizer.cycles - 10
