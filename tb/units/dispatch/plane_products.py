"""Plane products against Python's multiplication."""

import random

import cocotb

from openmxu.rtl.dispatch.check.instruction_ranges import source_width
from openmxu.rtl.dispatch.check.plane_products import PlaneFactors
from tb.bench import CONFIG, Bench
from tb.models.payloads import pack

ADDRESS_WIDTH = source_width(CONFIG)
RUNS = 300


def some(width):
    """A number of ``width`` bits, often one of the limits or a small one."""
    return random.choice([0, 1, (1 << width) - 1, random.getrandbits(width), random.getrandbits(5)])


def some_factors():
    """Size of a plane, and start and stride of a walk over it."""
    y = random.choice([-(1 << 15), (1 << 15) - 1, random.randrange(-300, 300)])
    return {"height": some(16), "width": some(16), "y": y, "stride_y": some(8)}


@cocotb.test()
async def multiplies_every_pair(dut):
    bench = await Bench.start(dut, "plane_products")
    inputs = {
        name: bench.port(name)
        for name in ("start", "convolves", "convolution", "pooling", "output_height", "output_width")
    }
    done, product = bench.port("done"), bench.port("product")
    for _ in range(RUNS):
        convolves, output_height, output_width = random.getrandbits(1), some(16), some(16)
        plane, other = some_factors(), some_factors()
        inputs["convolves"].value = convolves
        inputs["convolution" if convolves else "pooling"].value = pack(PlaneFactors, plane)
        inputs["pooling" if convolves else "convolution"].value = pack(PlaneFactors, other)
        inputs["output_height"].value, inputs["output_width"].value = output_height, output_width
        inputs["start"].value = 1
        await bench.step()
        inputs["start"].value = 0
        await bench.step()
        seen = {"has_positions": [], "has_outputs": []}
        while not int(done.value):
            for name, products in seen.items():
                if int(bench.port(name).value):
                    products.append(int(product.value))
            await bench.step()
            assert len(seen["has_positions"]) < 2
        assert seen == {
            "has_positions": [plane["height"] * plane["width"]],
            "has_outputs": [output_height * output_width],
        }
        assert int(bench.port("first_row").value) == plane["y"] * plane["width"] % (1 << ADDRESS_WIDTH)
        await bench.step()
        assert int(bench.port("pitch").value) == plane["stride_y"] * plane["width"] % (1 << ADDRESS_WIDTH)
        await bench.steps(random.randrange(3))
