"""Weight fetcher: reads tiles of weight memory as rows of operands, never more than the weight FIFO has room for."""

import random
from dataclasses import dataclass

import cocotb
import numpy as np

from openmxu.arch.numerics import operand
from openmxu.rtl.dispatch.commands import loads_weights, weight_command
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.memories import ReadMemory
from tb.models.payloads import pack, pack_lanes

COMMANDS = 40


@dataclass(frozen=True)
class Fetch:
    """A Read_Weights command, or a Load_Weights command with the rows of its tile."""

    address: int
    tiles: int
    zero_point: int
    is_signed: int
    wide: int
    loaded: np.ndarray | None = None
    transposed: int = 0

    @property
    def payload(self):
        format = {"zero_point": self.zero_point, "is_signed": self.is_signed}
        values = {"address": self.address, "tiles": self.tiles, "format": format, "wide": self.wide}
        if loads_weights(CONFIG):
            values |= {"from_buffer": self.loaded is not None, "transposed": self.transposed}
        return pack(weight_command(CONFIG), values)

    def rows(self, memory):
        """The rows that the command must deliver."""
        if self.loaded is not None:
            return pack_lanes(operand(self.loaded, self.zero_point, bool(self.is_signed)), OPERAND_WIDTH)
        content = memory[self.address : self.address + self.tiles * CONFIG.tile_bytes]
        tiles = content.reshape(self.tiles, CONFIG.size, CONFIG.size)
        if self.wide:
            values = np.stack([operand(tile, 0, bool(number % 2)) for number, tile in enumerate(tiles)])
        else:
            values = operand(tiles, self.zero_point, bool(self.is_signed))
        return pack_lanes(values.reshape(-1, CONFIG.size), OPERAND_WIDTH)


def random_fetches(rng, memory, count):
    """Random legal commands."""
    fetches = []
    for _ in range(count):
        tiles = int(rng.integers(1, 6))
        places = (memory.size - tiles * CONFIG.tile_bytes) // CONFIG.weight_alignment
        is_signed = int(rng.integers(2))
        zero_point = int(rng.integers(-128, 128)) if is_signed else int(rng.integers(0, 256))
        address = int(rng.integers(places + 1)) * CONFIG.weight_alignment
        fetches.append(Fetch(address, tiles, zero_point, is_signed, wide=int(rng.integers(2))))
    return fetches


def random_loads(rng, fetches):
    """The same commands with a Load_Weights before some of them, and sometimes several."""
    mixed = []
    for fetch in fetches:
        for _ in range(int(rng.choice([0, 0, 1, 2, 5])) if loads_weights(CONFIG) else 0):
            loaded = rng.integers(0, 256, (CONFIG.size, CONFIG.size), np.uint8)
            format = fetch.zero_point, fetch.is_signed, 0
            mixed.append(Fetch(int(rng.integers(1000)), 1, *format, loaded, int(rng.integers(2))))
        mixed.append(fetch)
    return mixed


class Consumer(Agent):
    """Stands for the weight FIFO: removes whole tiles after some time."""

    def __init__(self, bench, rows, host, stall):
        self.rows, self.host, self.stall = rows, host, stall
        self.are_loaded = []  # for each tile in order, if some are loaded
        self.port = bench.port("tile_taken")
        self.taken, self.takes, self.enabled = 0, 0, True
        bench.add(self)

    def sample(self):
        self.taken += self.takes
        loaded = sum(self.are_loaded[: len(self.rows.received) // CONFIG.size])
        assert len(self.host.bursts) + loaded - self.taken <= CONFIG.weight_fifo_tiles, "a tile too many was asked for"

    def drive(self):
        whole = len(self.rows.received) // CONFIG.size
        self.takes = int(self.enabled and whole > self.taken and random.random() >= self.stall)
        self.port.value = self.takes


async def make_bench(dut, idle, backpressure):
    bench = await Bench.start(dut, "weight_fetcher")
    bench.port("flush").value = 0
    rng = random_generator()
    memory = rng.integers(0, 256, 12 * CONFIG.tile_bytes + 3, np.uint8)
    host = ReadMemory(bench, "memory", memory, CONFIG.weight_address_width, CONFIG.weight_data_bytes, idle)
    transposed = bench.optional_port("transposed")
    rows = bench.sink("rows", backpressure, on_transfer=lambda row: rows.transposed.append(int(transposed.value)))
    rows.transposed = []
    consumer = Consumer(bench, rows, host, backpressure)
    commands = bench.source("commands", idle)
    return bench, rng, memory, host, rows, consumer, commands


@cocotb.test()
@STALLS
async def tiles_arrive(dut, idle, backpressure):
    bench, rng, memory, host, rows, consumer, commands = await make_bench(dut, idle, backpressure)
    fetches = random_loads(rng, random_fetches(rng, memory, COMMANDS))
    expected = [row for fetch in fetches for row in fetch.rows(memory)]
    consumer.are_loaded = [fetch.loaded is not None for fetch in fetches for _ in range(fetch.tiles)]
    loaded = [row for fetch in fetches if fetch.loaded is not None for row in fetch.loaded]
    if loads_weights(CONFIG):
        buffer_rows = bench.source("buffer_rows", idle)
        buffer_rows.send(*(int.from_bytes(row.tobytes(), "little") for row in loaded))
    commands.send(*(fetch.payload for fetch in fetches))
    busy, settled = bench.port("busy"), bench.port("settled")
    await bench.step()
    while len(rows.received) < len(expected):
        if host.data.sent and not host.is_idle:
            assert not int(settled.value)
        if len(rows.received) % CONFIG.size:
            assert not int(settled.value), "a tile is not complete"
        await bench.step()
        assert bench.cycle < 20_000
    await bench.steps(3)
    assert rows.received == expected
    assert int(busy.value) == 0
    assert int(settled.value) == 1
    assert not loads_weights(CONFIG) or buffer_rows.is_empty
    assert len(host.bursts) == sum(fetch.tiles for fetch in fetches if fetch.loaded is None)
    assert rows.transposed == [fetch.transposed for fetch in fetches for _ in range(fetch.tiles * CONFIG.size)]


@cocotb.test()
async def commands_queue_up_and_settle(dut):
    """Without room for tiles, the command queue fills up, and the fetcher settles once the tiles have come."""
    bench, rng, memory, _, rows, consumer, commands = await make_bench(dut, 0.0, 0.0)
    consumer.enabled = False
    fetches = random_fetches(rng, memory, CONFIG.weight_fifo_tiles + 2 * CONFIG.weight_queue_depth + 4)
    commands.send(*(fetch.payload for fetch in fetches))
    await bench.steps(400)
    expected = [row for fetch in fetches for row in fetch.rows(memory)]
    assert rows.received == expected[: CONFIG.weight_fifo_tiles * CONFIG.size]
    # The tiles in the FIFO belong to the first commands, of which the last may still have tiles to come.
    whole = np.cumsum([fetch.tiles for fetch in fetches]) <= CONFIG.weight_fifo_tiles
    # In addition to the queue: the command being executed, and one between it and the queue.
    assert len(commands.sent) == whole.sum() + 2 + CONFIG.weight_queue_depth
    assert int(bench.port("settled").value) == 1
    assert int(bench.port("busy").value) == 1
    consumer.enabled = True
    await bench.until(lambda: len(rows.received) == len(expected))
    assert rows.received == expected


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.6])
async def flush_drops_what_is_queued(dut, stall):
    """Tiles already requested still arrive whole, queued commands are dropped, and later commands work as before."""
    bench, rng, memory, host, rows, consumer, commands = await make_bench(dut, stall, stall)
    flush, busy = bench.port("flush"), bench.port("busy")
    for _ in range(12):
        fetches = random_fetches(rng, memory, 3)
        commands.send(*(fetch.payload for fetch in fetches))
        await bench.until(lambda: commands.is_empty)
        await bench.steps(int(rng.integers(0, 30)))
        flush.value = 1
        await bench.steps(3)
        await bench.until(lambda: not int(busy.value))
        flush.value = 0
        expected = [row for fetch in fetches for row in fetch.rows(memory)]
        assert rows.received == expected[: len(rows.received)]
        assert len(rows.received) == len(host.bursts) * CONFIG.size
        await bench.until(lambda: consumer.taken == len(host.bursts))
        rows.received.clear()
        host.bursts.clear()
        consumer.taken = 0
