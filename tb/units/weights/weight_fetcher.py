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
    """Stands for the weight FIFO: puts rows together to tiles, and removes the oldest whole tile after some time.

    Attributes
    ----------
    rows
        Rows of the tiles that are whole and before which none is missing, in their order.
    transposed
        For each of these whether it is a column.
    tiles
        Their number.
    taken
        The number of tiles removed.
    coming
        By number the rows of other tiles.
    """

    def __init__(self, bench, host, stall):
        self.host, self.stall = host, stall
        self.is_loaded = []  # for each tile in order, if some are loaded
        self.port = bench.port("tile_taken")
        self.place = [bench.optional_port(name) for name in ("slot", "row", "transposed")]
        self.sink = bench.sink("rows", on_transfer=self.receive)
        self.enabled = True
        self.first_slot = self.taken = 0
        self.clear()
        bench.add(self)

    def clear(self):
        """Begin to count anew; all tiles are taken."""
        # Slots go on behind the last tile.
        self.first_slot = (self.first_slot + self.taken) % CONFIG.weight_fifo_tiles
        self.rows, self.transposed = [], []
        self.tiles = self.taken = self.takes = 0
        self.coming = {}

    def is_between(self):
        """Whether a tile has some of its rows, but not all."""
        return any(len(rows) < CONFIG.size for rows in self.coming.values())

    def receive(self, row):
        slot, number, transposed = (int(port.value) for port in self.place)
        tile = self.tiles
        if loads_weights(CONFIG):
            tile = self.taken + (slot - self.first_slot - self.taken) % CONFIG.weight_fifo_tiles
            assert tile >= self.tiles, "the slot is in use"
            assert number == len(self.coming.get(tile, [])), "rows come in order"
        self.coming.setdefault(tile, []).append((row, transposed))
        while len(self.coming.get(self.tiles, [])) == CONFIG.size:
            for row, transposed in self.coming.pop(self.tiles):
                self.rows.append(row)
                self.transposed.append(transposed)
            self.tiles += 1

    def sample(self):
        self.taken += self.takes
        loaded = sum(self.is_loaded[: self.tiles])
        asked = len(self.host.bursts) + loaded
        assert asked - self.taken <= CONFIG.weight_fifo_tiles, "a tile too many was asked for"

    def drive(self):
        self.takes = int(self.enabled and self.tiles > self.taken and random.random() >= self.stall)
        self.port.value = self.takes


async def make_bench(dut, idle, backpressure):
    bench = await Bench.start(dut, "weight_fetcher")
    bench.port("flush").value = 0
    rng = random_generator()
    memory = rng.integers(0, 256, 12 * CONFIG.tile_bytes + 3, np.uint8)
    host = ReadMemory(bench, "memory", memory, CONFIG.weight_address_width, CONFIG.weight_data_bytes, idle)
    consumer = Consumer(bench, host, backpressure)
    commands = bench.source("commands", idle)
    return bench, rng, memory, host, consumer, commands


@cocotb.test()
@STALLS
async def tiles_arrive(dut, idle, backpressure):
    bench, rng, memory, host, consumer, commands = await make_bench(dut, idle, backpressure)
    fetches = random_loads(rng, random_fetches(rng, memory, COMMANDS))
    expected = [row for fetch in fetches for row in fetch.rows(memory)]
    consumer.is_loaded = [fetch.loaded is not None for fetch in fetches for _ in range(fetch.tiles)]
    loaded = [row for fetch in fetches if fetch.loaded is not None for row in fetch.loaded]
    if loads_weights(CONFIG):
        buffer_rows = bench.source("buffer_rows", idle)
        buffer_rows.send(*(int.from_bytes(row.tobytes(), "little") for row in loaded))
    commands.send(*(fetch.payload for fetch in fetches))
    busy, settled = bench.port("busy"), bench.port("settled")
    await bench.step()
    while len(consumer.rows) < len(expected):
        if host.data.sent and not host.is_idle:
            assert not int(settled.value)
        if consumer.is_between():
            assert not int(settled.value), "a tile is not complete"
        await bench.step()
        assert bench.cycle < 20_000
    await bench.steps(3)
    assert consumer.rows == expected
    assert int(busy.value) == 0
    assert int(settled.value) == 1
    assert not loads_weights(CONFIG) or buffer_rows.is_empty
    assert len(host.bursts) == sum(fetch.tiles for fetch in fetches if fetch.loaded is None)
    assert consumer.transposed == [fetch.transposed for fetch in fetches for _ in range(fetch.tiles * CONFIG.size)]


if loads_weights(CONFIG):

    @cocotb.test()
    @cocotb.parametrize(stall=[0.0, 0.6])
    async def memory_goes_on_beside_loads(dut, stall):
        """Tiles behind a Load_Weights come while its rows do not, and then wait for them."""
        bench, rng, memory, host, consumer, commands = await make_bench(dut, stall, stall)
        buffer_rows = bench.source("buffer_rows", stall)
        ahead = CONFIG.weight_fifo_tiles - 1
        for _ in range(10):
            before = len(host.bursts)
            tile = rng.integers(0, 256, (CONFIG.size, CONFIG.size), np.uint8)
            load = Fetch(0, 1, 7, 1, 0, tile, transposed=int(rng.integers(2)))
            fetch = Fetch(0, ahead, 3, 1, 0)
            commands.send(load.payload, fetch.payload)
            await bench.until(lambda first=before: len(host.bursts) == first + ahead and host.is_idle)
            await bench.steps(2)
            assert [len(rows) for rows in consumer.coming.values()] == ahead * [CONFIG.size]
            assert not consumer.rows
            assert int(bench.port("busy").value) == 1
            assert int(bench.port("settled").value) == 0
            buffer_rows.send(*(int.from_bytes(row.tobytes(), "little") for row in tile))
            expected = [*load.rows(memory), *fetch.rows(memory)]
            await bench.until(lambda rows=expected: len(consumer.rows) == len(rows))
            assert consumer.rows == expected
            await bench.until(lambda: consumer.taken == CONFIG.weight_fifo_tiles)
            consumer.clear()
            host.bursts.clear()


@cocotb.test()
async def commands_queue_up_and_settle(dut):
    """Without room for tiles, the command queue fills up, and the fetcher settles once the tiles have come."""
    bench, rng, memory, _, consumer, commands = await make_bench(dut, 0.0, 0.0)
    consumer.enabled = False
    fetches = random_fetches(rng, memory, CONFIG.weight_fifo_tiles + 2 * CONFIG.weight_queue_depth + 4)
    commands.send(*(fetch.payload for fetch in fetches))
    await bench.steps(400)
    expected = [row for fetch in fetches for row in fetch.rows(memory)]
    assert consumer.rows == expected[: CONFIG.weight_fifo_tiles * CONFIG.size]
    # The tiles in the FIFO belong to the first commands, of which the last may still have tiles to come.
    whole = np.cumsum([fetch.tiles for fetch in fetches]) <= CONFIG.weight_fifo_tiles
    # In addition to the queue: the command being executed, and one between it and the queue.
    assert len(commands.sent) == whole.sum() + 2 + CONFIG.weight_queue_depth
    assert int(bench.port("settled").value) == 1
    assert int(bench.port("busy").value) == 1
    consumer.enabled = True
    await bench.until(lambda: len(consumer.rows) == len(expected))
    assert consumer.rows == expected


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.6])
async def flush_drops_what_is_queued(dut, stall):
    """Tiles already requested still arrive whole, queued commands are dropped, and later commands work as before."""
    bench, rng, memory, host, consumer, commands = await make_bench(dut, stall, stall)
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
        assert consumer.rows == expected[: len(consumer.rows)]
        assert len(consumer.rows) == len(host.bursts) * CONFIG.size
        await bench.until(lambda: consumer.taken == len(host.bursts))
        consumer.clear()
        host.bursts.clear()
