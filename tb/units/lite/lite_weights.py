"""Weights of the lite profile: all tiles of every Read_Weights in order, and never more than there is room for."""

import random

import cocotb
import numpy as np

from openmxu.arch.numerics import operand
from openmxu.rtl.dispatch.commands import weight_command
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, Bench, random_generator
from tb.memories import ReadMemory
from tb.models.payloads import pack, unpack_lanes

COMMANDS = 25


async def start(dut, idle):
    bench = await Bench.start(dut, "lite_weights")
    for name in ("flush", "take", "pair"):
        bench.port(name).value = 0
    memory = random_generator().integers(0, 256, (CONFIG.weight_fifo_tiles + 10) * CONFIG.tile_bytes + 3, np.uint8)
    reads = ReadMemory(bench, "memory", memory, CONFIG.weight_address_width, CONFIG.weight_data_bytes, idle)
    return bench, memory, reads, bench.source("commands")


def random_fetch(memory):
    """Address, number of tiles, zero point, and whether bytes are signed."""
    tiles = random.randint(1, 6)
    places = (memory.size - tiles * CONFIG.tile_bytes) // CONFIG.weight_alignment
    is_signed = random.randrange(2)
    zero_point = random.randrange(-128, 128) if is_signed else random.randrange(256)
    return random.randint(0, places) * CONFIG.weight_alignment, tiles, zero_point, is_signed


async def send(bench, commands, address, tiles, zero_point, is_signed):
    format = {"zero_point": zero_point, "is_signed": is_signed}
    commands.send(pack(weight_command(CONFIG), {"address": address, "tiles": tiles, "format": format}))
    await bench.until(lambda: commands.is_empty)
    await bench.step()


async def read_tile(bench):
    """Read all rows of the oldest tile; reading the last ones removes it."""
    rows = []
    for pair in range(CONFIG.size // 2):
        bench.port("pair").value = pair
        bench.port("take").value = int(pair == CONFIG.size // 2 - 1)
        await bench.step()
        bench.port("take").value = 0
        await bench.step()
        rows.append(int(bench.port("operands").value))
    return unpack_lanes(rows, 2 * CONFIG.size, OPERAND_WIDTH, signed=True).reshape(CONFIG.size, CONFIG.size)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], stall=[0, 40])
async def tiles_arrive(dut, idle, stall):
    """``stall``: maximum number of cycles before a tile is taken."""
    bench, memory, reads, commands = await start(dut, idle)
    ready, settled = bench.port("ready"), bench.port("settled")
    assert not int(bench.port("has_tile").value)
    for _ in range(COMMANDS):
        address, tiles, zero_point, is_signed = random_fetch(memory)
        assert not int(bench.port("queue_full").value)
        await send(bench, commands, address, tiles, zero_point, is_signed)
        content = memory[address : address + tiles * CONFIG.tile_bytes].reshape(tiles, CONFIG.size, CONFIG.size)
        asked = len(reads.bursts)
        for number, tile in enumerate(content):
            assert int(bench.port("has_queued_tile").value)
            assert int(bench.port("queue_full").value)
            await bench.steps(random.randint(0, stall))
            await bench.until(lambda: int(ready.value))
            assert len(reads.bursts) - asked <= number + CONFIG.weight_fifo_tiles
            assert np.array_equal(await read_tile(bench), operand(tile, zero_point, bool(is_signed)))
            assert int(bench.port("has_tile").value)
        assert not int(bench.port("has_queued_tile").value)
        assert int(settled.value)
        assert int(bench.port("empty").value)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6])
async def waits_for_room(dut, idle):
    bench, _, reads, commands = await start(dut, idle)
    tiles = CONFIG.weight_fifo_tiles + 2
    await send(bench, commands, 0, tiles, 0, 0)
    await bench.steps(60 * tiles * CONFIG.size)
    assert len(reads.bursts) == CONFIG.weight_fifo_tiles
    assert int(bench.port("settled").value)
    assert not int(bench.port("empty").value)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6])
async def flush_discards_everything(dut, idle):
    """A flush may come at any time; outstanding reads are completed, and later commands work as before."""
    bench, memory, _, commands = await start(dut, idle)
    empty = bench.port("empty")
    for _ in range(25):
        await send(bench, commands, *random_fetch(memory))
        if random.random() < 0.3:
            await bench.until(lambda: int(bench.port("ready").value))
            await read_tile(bench)
        await bench.steps(random.randrange(4 * CONFIG.tile_bytes))
        bench.port("flush").value = 1
        await bench.step()
        await bench.until(lambda: int(empty.value))
        bench.port("flush").value = 0
        await bench.step()
        assert not int(bench.port("has_tile").value)
        assert not int(bench.port("has_queued_tile").value)
        assert not int(bench.port("ready").value)
        address, _, zero_point, is_signed = random_fetch(memory)
        await send(bench, commands, address, 1, zero_point, is_signed)
        await bench.until(lambda: int(bench.port("ready").value))
        tile = memory[address : address + CONFIG.tile_bytes].reshape(CONFIG.size, CONFIG.size)
        assert np.array_equal(await read_tile(bench), operand(tile, zero_point, bool(is_signed)))
