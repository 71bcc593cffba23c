"""Plane products against Python's multiplication."""

import random

import cocotb

from openmxu.rtl.dispatch.plane_products import PlaneFactors
from tb.bench import Bench
from tb.models.payloads import pack

RUNS = 300


def some(width):
    """A number of ``width`` bits: often an end of the range, often small."""
    return random.choice([0, 1, (1 << width) - 1, random.getrandbits(width), random.getrandbits(5)])


@cocotb.test()
async def multiplies_every_pair(dut):
    bench = await Bench.start(dut, "plane_products")
    start, factors, done = bench.port("start"), bench.port("factors"), bench.port("done")
    for _ in range(RUNS):
        height, width, output_height, output_width, stride_y = some(16), some(16), some(16), some(16), some(8)
        y = random.choice([-(1 << 15), (1 << 15) - 1, random.randrange(-300, 300)])
        values = {"height": height, "width": width, "output_height": output_height, "output_width": output_width}
        factors.value = pack(PlaneFactors, {**values, "y": y, "stride_y": stride_y})
        start.value = 1
        await bench.step()
        start.value = 0
        await bench.step()
        await bench.until(lambda: int(done.value), 20)
        assert int(bench.port("positions").value) == height * width
        assert int(bench.port("outputs").value) == output_height * output_width
        assert int(bench.port("first_row").value) == y * width % (1 << 33)
        assert int(bench.port("pitch").value) == stride_y * width
        await bench.steps(random.randrange(3))
