"""Address generator: every position of every walk, in order, without a gap."""

from itertools import pairwise

import cocotb
from amaranth.hdl import Shape

from openmxu.rtl.common.address_generator import step_layout
from openmxu.rtl.dispatch.commands import activation_walk, matrix_walk
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import pack, unpack
from tb.models.walks import positions, random_walk
from tb.rack import FAR_OUTPUTS, FAR_WALKS

WALKS = 250
MOST_ROWS = 40
UNITS = cocotb.parametrize(unit=["address_generator", "address_generator_windows"])
LATENCY = {"address_generator": 2, "address_generator_windows": 4}
LAYOUTS = {"address_generator": matrix_walk(CONFIG), "address_generator_windows": activation_walk(CONFIG)}


def address_width(layout):
    return Shape.cast(layout["address"].shape).width


def check_step(bits, position, layout):
    step = unpack(step_layout(layout), bits)
    assert step.inside == position.inside
    assert step.last == position.last
    if position.inside:
        assert step.address == position.address
    if "window_height" in layout.members:
        assert (step.begins, step.ends, step.repeat) == (position.begins, position.ends, position.repeat)
        assert position.turns is None or step.turns == position.turns
    if "target" in layout.members:
        assert (step.target, step.first) == (position.target, position.first)


@cocotb.test()
@UNITS
@STALLS
async def walks_over_planes_and_ranges(dut, unit, idle, backpressure):
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    layout = LAYOUTS[unit]
    walks = [random_walk(rng, layout, MOST_ROWS) for _ in range(WALKS)]
    expected = [position for walk in walks for position in positions(walk, address_width(layout))]
    source, steps = bench.source("walks", idle), bench.sink("steps", backpressure)
    source.send(*(pack(layout, walk) for walk in walks))
    await bench.until(lambda: len(steps.received) == len(expected), limit=10 * len(expected))
    await bench.steps(6)
    for bits, position in zip(steps.received, expected, strict=True):
        check_step(bits, position, layout)
    assert {position.inside for position in expected} == {False, True}
    if idle == backpressure == 0:
        assert all(later == earlier + 1 for earlier, later in pairwise(steps.times))


@cocotb.test()
@UNITS
async def the_first_position_comes_after_the_latency(dut, unit):
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    layout = LAYOUTS[unit]
    source, steps = bench.source("walks"), bench.sink("steps")
    for _ in range(20):
        walk = random_walk(rng, layout, 1)
        expected = list(positions(walk, address_width(layout)))
        begin = len(steps.received)
        source.send(pack(layout, walk))
        end = begin + len(expected)
        await bench.until(lambda end=end: len(steps.received) == end)
        assert steps.times[begin] == source.times[-1] + LATENCY[unit]
        for bits, position in zip(steps.received[begin:], expected, strict=True):
            check_step(bits, position, layout)
        await bench.steps(int(rng.integers(0, 3)))


if CONFIG.size == 2:  # once, because these walks do not depend on the size

    @cocotb.test()
    @cocotb.parametrize(unit=list(FAR_WALKS), start=[0, -(1 << 16), (1 << 16) - 1])
    async def outputs_far_beyond_the_plane_stay_outside(dut, unit, start):
        """Positions do not wrap around, however many outputs there are in either direction."""
        bench = await Bench.start(dut, unit)
        layout = FAR_WALKS[unit]
        source, steps = bench.source("walks"), bench.sink("steps")
        expected = []
        for width in (1, FAR_OUTPUTS):
            walk = {"address": 5, "rows": FAR_OUTPUTS, "wide": 0, "is_plane": 1, "width": width, "y": start, "x": start}
            walk |= {"stride_y": 255, "stride_x": 255, "pitch": 255 * 40 % 1024, "plane_height": 40, "plane_width": 40}
            if "window_height" in layout.members:
                walk |= {"window_height": 2, "window_width": 3}
            source.send(pack(layout, walk))
            expected += positions(walk, address_width(layout))
        await bench.until(lambda: len(steps.received) == len(expected), limit=10 * len(expected))
        for bits, position in zip(steps.received, expected, strict=True):
            check_step(bits, position, layout)
