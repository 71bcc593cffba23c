"""Weight FIFO: whole tiles are written, rows of the oldest tile are read."""

import random
from collections import deque

import cocotb

from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, STALLS, Agent, Bench

TILES = 80


class Writer(Agent):
    """Writes tiles row by row; in cores with Load_Weights rows of several tiles in turn."""

    def __init__(self, bench, idle):
        self.idle = idle
        self.valid, self.payload = bench.port("rows__valid"), bench.port("rows__payload")
        self.slot, self.row, self.transposed = (bench.optional_port(name) for name in ("slot", "row", "transposed"))
        self.started = self.arrived = 0
        self.tiles = {}  # by number: rows, whether they are columns, and how many of them have been written
        self.written = None
        bench.add(self)

    def arrivals(self):
        """Tiles that are whole, and all tiles before them, with the last row written in this cycle.

        One tile in a cycle, even if several have come before an earlier one."""
        if self.written is not None:
            self.tiles[self.written][2] += 1
            self.written = None
        if self.arrived in self.tiles and self.tiles[self.arrived][2] == CONFIG.size:
            rows, transposed, _ = self.tiles.pop(self.arrived)
            self.arrived += 1
            yield rows, transposed

    def start(self):
        rows = [random.getrandbits(OPERAND_WIDTH * CONFIG.size) for _ in range(CONFIG.size)]
        self.tiles[self.started] = [rows, int(loads_weights(CONFIG) and random.random() < 0.5), 0]
        self.started += 1

    def drive(self):
        open_tiles = [number for number, (_, _, written) in self.tiles.items() if written < CONFIG.size]
        # Two tiles at most are being written.
        number = random.choice(open_tiles[: 2 if loads_weights(CONFIG) else 1]) if open_tiles else None
        self.valid.value = 0
        self.slot.value = random.randrange(CONFIG.weight_fifo_tiles)
        self.row.value, self.transposed.value = random.randrange(CONFIG.size), random.randrange(2)
        if number is None or random.random() < self.idle:
            return
        rows, transposed, written = self.tiles[number]
        self.valid.value, self.payload.value = 1, rows[written]
        self.slot.value, self.row.value = number % CONFIG.weight_fifo_tiles, written
        self.transposed.value = transposed
        self.written = number


class Reader(Agent):
    """Reads rows of the oldest tile in random order, and drops the tile with the last one."""

    def __init__(self, bench, writer, pause):
        self.writer, self.pause = writer, pause
        self.enable, self.row, self.drop = (bench.port(name) for name in ("read_enable", "read_row", "drop"))
        self.data, self.tiles = bench.port("read_data"), bench.port("tiles")
        self.transposed = bench.optional_port("read_transposed")
        self.held, self.order, self.asked, self.expected = deque(), [], None, None
        self.dropped = self.most = 0
        bench.add(self)

    def sample(self):
        if self.expected is not None:
            assert int(self.data.value) == self.expected
        assert int(self.tiles.value) == len(self.held)
        if self.held:
            assert int(self.transposed.value) == self.held[0][1]
        self.expected = None if self.asked is None else self.held[0][0][self.asked]
        if self.asked is not None and not self.order:
            self.held.popleft()
            self.dropped += 1
        self.held.extend(self.writer.arrivals())
        self.most = max(self.most, len(self.held))

    def drive(self):
        self.asked = None
        if self.held and random.random() >= self.pause:
            if not self.order:
                self.order = random.sample(range(CONFIG.size), CONFIG.size)
            self.asked = self.order.pop()
        self.enable.value = int(self.asked is not None)
        self.row.value = random.randrange(CONFIG.size) if self.asked is None else self.asked
        self.drop.value = int(self.asked is not None and not self.order)


@cocotb.test()
@STALLS
async def tiles_in_order(dut, idle, backpressure):
    bench = await Bench.start(dut, "weight_fifo")
    writer = Writer(bench, idle)
    reader = Reader(bench, writer, backpressure)
    while reader.dropped < TILES:
        if writer.started < TILES and writer.started - reader.dropped < CONFIG.weight_fifo_tiles:
            writer.start()
        await bench.step()
        assert bench.cycle < 20_000
    if backpressure > idle:
        assert reader.most == CONFIG.weight_fifo_tiles
