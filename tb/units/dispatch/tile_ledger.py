"""Tile ledger against a list of tile counts."""

import random
from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from openmxu.rtl.dispatch.commands import loads_weights
from tb.bench import CONFIG, Bench

CYCLES = 3000
MANY = 3001
MOST = (1 << 19) + (1 << 10) - 2
"""Of these an odd number has bit 19: a bit that is inverted with each of them is wrong at the end."""
SETTLES = 2
"""Cycles after a Read_Weights until its tiles are available; instructions are further apart."""
SETTLES_TO_LOAD = 2
"""Cycles after an instruction until it is known whether a Load_Weights has room."""


@cocotb.test()
async def counts_tiles(dut):
    bench = await Bench.start(dut, "tile_ledger")
    ports = {name: bench.port(name) for name in ("enqueue", "tiles", "take", "clear")}
    names = {"has_queued_tile", "has_two_queued_tiles", "has_tile", "queue_full", "is_clear"}
    outputs = {name: bench.port(name) for name in (*names, *(("may_load",) if loads_weights(CONFIG) else ()))}
    outstanding, has_tile, clears = deque(), False, False
    loads = 0
    most, settles, since = 0, 0, 0
    for cycle in range(CYCLES):
        # While `clear` is set, nothing else happens until the ledger is clear.
        clears = (clears and bool(outstanding)) or (not clears and not settles and random.random() < 0.02)
        expected = {
            "has_queued_tile": bool(outstanding),
            "has_two_queued_tiles": sum(outstanding) >= 2,
            "has_tile": has_tile,
            "queue_full": len(outstanding) == CONFIG.weight_queue_depth,
            "is_clear": not outstanding,
            "may_load": len(outstanding) < CONFIG.weight_queue_depth and sum(outstanding) < CONFIG.weight_fifo_tiles,
        }
        queue = not clears and not settles and not expected["queue_full"] and random.random() < 0.3
        takes = not clears and not settles and not queue and bool(outstanding) and random.random() < 0.6
        is_load = loads_weights(CONFIG) and expected["may_load"] and since >= SETTLES_TO_LOAD and random.random() < 0.7
        tiles = 1 if is_load else random.choice([1, 1, 2, 3, random.randrange(1, 9), 1 + (1 << random.randrange(24))])
        ports["enqueue"].value, ports["tiles"].value = int(queue), tiles
        ports["take"].value, ports["clear"].value = int(takes), int(clears)
        await RisingEdge(dut.clk)
        known = {"has_tile", "queue_full", "is_clear"} if settles else names
        if loads_weights(CONFIG) and since >= SETTLES_TO_LOAD:
            known = known | {"may_load"}
        assert {name: int(outputs[name].value) for name in known} == {name: expected[name] for name in known}, cycle
        most = max(most, len(outstanding))
        if clears:
            has_tile = False
            outstanding.clear()
        if takes:
            has_tile = True
            outstanding[0] -= 1
            if outstanding[0] == 0:
                outstanding.popleft()
        loads += queue and is_load
        settles = SETTLES if queue else max(0, settles - 1)
        since = 0 if queue or takes or clears else since + 1
        if queue:
            outstanding.append(tiles)
    assert loads > 20 if loads_weights(CONFIG) else loads == 0
    assert most == CONFIG.weight_queue_depth


@cocotb.test()
async def counts_many_tiles(dut):
    bench = await Bench.start(dut, "tile_ledger")
    take, clear = bench.port("take"), bench.port("clear")
    take.value = clear.value = 0
    await _read_weights(bench, MANY)
    queued, two_queued = bench.port("has_queued_tile"), bench.port("has_two_queued_tiles")
    take.value = 1
    for left in range(MANY, 0, -1):
        await bench.step()
        assert (int(queued.value), int(two_queued.value)) == (1, left >= 2)
    take.value = 0
    await bench.step()
    assert (int(queued.value), int(two_queued.value)) == (0, 0)
    if loads_weights(CONFIG):
        await _load_after_most(bench)


async def _read_weights(bench: Bench, tiles: int) -> None:
    """Enqueue a Read_Weights, and wait until its tiles are available."""
    bench.port("enqueue").value, bench.port("tiles").value = 1, tiles
    await bench.step()
    bench.port("enqueue").value = 0
    await bench.steps(SETTLES)


async def _load_after_most(bench: Bench) -> None:
    """Of very many tiles nearly all must be taken before a Load_Weights has room."""
    take, may_load = bench.port("take"), bench.port("may_load")
    await _read_weights(bench, MOST)
    for tiles, has_room in ((MOST - CONFIG.weight_fifo_tiles, False), (1, CONFIG.weight_queue_depth > 1)):
        take.value = 1
        await bench.skip(tiles)
        take.value = 0
        await bench.steps(SETTLES_TO_LOAD + 1)
        assert bool(may_load.value) == has_room
