"""Plane walker: every position of every walk, in order, without a gap, against four nested loops."""

from itertools import pairwise

import cocotb
from amaranth.hdl import Shape

from openmxu.rtl.commands import activation_walk, matrix_walk
from openmxu.rtl.plane_walker import step_layout
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.payloads import pack, unpack

WALKS = 250
UNITS = cocotb.parametrize(unit=["plane_walker", "plane_walker_windows"])
LAYOUTS = {"plane_walker": matrix_walk(CONFIG), "plane_walker_windows": activation_walk(CONFIG)}


def positions(walk):
    """What the walker must show: ``(address, inside)`` and, with windows, ``(begins, ends, repeat)`` beside it."""
    windows = "window_height" in walk
    window_height, window_width = (walk["window_height"], walk["window_width"]) if windows else (1, 1)
    pitch = walk["stride_y"] * walk["plane_width"] if walk["is_plane"] else 0
    width = walk["width"] if walk["is_plane"] else walk["rows"]
    for row in range(walk["rows"]):
        y, x = divmod(row, width)
        for repeat in range(walk.get("repeats", 0) + 1):
            for wy in range(window_height):
                for wx in range(window_width):
                    offset = y * pitch + x * walk["stride_x"] + wy * walk["plane_width"] + wx
                    at_y = walk["y"] + y * walk["stride_y"] + wy
                    at_x = walk["x"] + x * walk["stride_x"] + wx
                    inside = 0 <= at_y < walk["plane_height"] and 0 <= at_x < walk["plane_width"]
                    place = (walk["address"] + (offset << walk["wide"]), inside or not walk["is_plane"])
                    number = wy * window_width + wx
                    begins, ends = number == 0, number == window_height * window_width - 1
                    yield place, (begins, ends, repeat) if windows else ()


def random_walk(rng, layout):
    """A walk over a plane, or along consecutive rows. Members that do not matter hold anything."""
    walk = {name: int(rng.integers(0, 1 << Shape.cast(field.shape).width)) for name, field in layout}
    windows = "window_height" in walk
    places = 1 << Shape.cast(layout["address"].shape).width
    most = (1 << Shape.cast(layout["rows"].shape).width) - 1
    walk["is_plane"] = int(rng.random() < 0.8)
    walk["wide"] = int(rng.integers(2))
    walk["rows"] = min(most, int(rng.choice([1, 1, 2, 3, rng.integers(1, 20)])))
    if windows:
        walk["window_height"] = walk["window_width"] = 1
        walk["repeats"] = int(rng.choice([0, 0, 1, 3]))
    if not walk["is_plane"]:
        return walk | {"stride_x": 1}
    walk["width"] = int(rng.integers(1, 8))
    walk["rows"] = min(most, walk["width"] * int(rng.integers(1, 5)))
    largest = min(8, CONFIG.unified_buffer_rows)
    for name in ("plane_height", "plane_width"):
        walk[name] = int(rng.integers(1, largest + 1))
    for name in ("stride_y", "stride_x"):
        walk[name] = int(rng.choice([0, 1, 1, 2, 3, 255, rng.integers(0, 256)]))
    walk["pitch"] = walk["stride_y"] * walk["plane_width"] % places
    for name in ("y", "x"):
        walk[name] = int(rng.choice([0, -1, -2, 1, rng.integers(-10, 10), -(1 << 15), (1 << 15) - 1]))
    if windows:
        for name in ("window_height", "window_width"):
            walk[name] = int(rng.choice([1, 1, 2, 3, rng.integers(1, 7)]))
    # The address is that of position (y, x), inside or not.
    first = int(rng.integers(0, places))
    walk["address"] = (first + ((walk["y"] * walk["plane_width"] + walk["x"]) << walk["wide"])) % places
    return walk


async def check_walks(dut, unit, walks, idle, backpressure):
    bench = await Bench.start(dut, unit)
    layout = LAYOUTS[unit]
    windows = "window_height" in layout.members
    address_width = Shape.cast(layout["address"].shape).width
    source, steps = bench.source("walks", idle), bench.sink("steps", backpressure)
    source.send(*(pack(layout, walk) for walk in walks))
    expected = [list(positions(walk)) for walk in walks]
    count = sum(len(walk) for walk in expected)
    await bench.until(lambda: len(steps.received) == count, limit=20 * count)
    await bench.steps(6)
    assert len(steps.received) == count

    received = iter(steps.received)
    inside_seen = set()
    for number, (walk, places) in enumerate(zip(walks, expected, strict=True)):
        for index, ((address, inside), window) in enumerate(places):
            step = unpack(step_layout(address_width, windows=windows), next(received))
            where = (number, index, walk)
            assert step.inside == inside, where
            if inside:
                assert step.address == address % (1 << address_width), where
            assert step.last == (index == len(places) - 1), where
            if windows:
                assert (step.begins, step.ends, step.repeat) == window, where
            inside_seen.add(inside)
    assert inside_seen == {False, True}
    if idle == backpressure == 0:
        assert all(later == earlier + 1 for earlier, later in pairwise(steps.times))
    return source, steps


@cocotb.test()
@UNITS
@STALLS
async def walks_over_planes_and_ranges(dut, unit, idle, backpressure):
    rng = random_generator()
    walks = [random_walk(rng, LAYOUTS[unit]) for _ in range(WALKS)]
    await check_walks(dut, unit, walks, idle, backpressure)


@cocotb.test()
@UNITS
async def the_first_position_comes_two_cycles_later(dut, unit):
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    source, steps = bench.source("walks"), bench.sink("steps")
    for _ in range(20):
        walk = random_walk(rng, LAYOUTS[unit]) | {"rows": 1, "window_height": 1, "window_width": 1, "repeats": 0}
        layout = LAYOUTS[unit]
        source.send(pack(layout, {name: value for name, value in walk.items() if name in layout.members}))
        count = len(steps.received)
        await bench.until(lambda count=count: len(steps.received) > count)
        assert steps.times[-1] == source.times[-1] + 2
        await bench.steps(int(rng.integers(0, 3)))
