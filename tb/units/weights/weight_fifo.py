"""Weight FIFO: whole tiles are written, rows of the oldest tile are read."""

import random
from collections import deque

import cocotb

from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from tb.bench import CONFIG, STALLS, Agent, Bench

TILES = 80


class Writer(Agent):
    """Writes tiles row by row."""

    def __init__(self, bench, idle):
        self.source = bench.source("rows", idle)
        self.transposed = bench.optional_port("transposed")
        self.started = 0
        self.whole = deque()
        self.arrived = 0
        bench.add(self)

    def arrivals(self):
        """Tiles whose last row was written in this cycle."""
        while self.arrived < len(self.source.sent) // CONFIG.size:
            self.arrived += 1
            yield self.whole.popleft()

    def start(self):
        tile = [random.getrandbits(OPERAND_WIDTH * CONFIG.size) for _ in range(CONFIG.size)]
        self.source.send(*tile)
        self.whole.append((tile, int(loads_weights(CONFIG) and random.random() < 0.5)))
        self.started += 1

    def drive(self):
        coming = len(self.source.sent) // CONFIG.size - self.arrived
        self.transposed.value = self.whole[coming][1] if coming < len(self.whole) else random.randrange(2)


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
