"""Result writer: bytes of the lanes become rows at consecutive addresses."""

import cocotb
import numpy as np

from openmxu.rtl.activation.activation_datapath import result_beat_layout
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.memories import RowWriter
from tb.models.payloads import pack
from tb.pulses import Pulses
from tb.rack import ROWS_IN_FLIGHT

WALKS = 60


class Lanes(Agent):
    """Drives the bytes of rows group by group, once there is room for the row; with random pauses between beats."""

    def __init__(self, bench, walks, idle, rng):
        self.bench, self.idle, self.rng = bench, idle, rng
        self.port = bench.port("bytes")
        self.layout = result_beat_layout(CONFIG)
        self.beats = []
        for rows in walks:
            for index, row in enumerate(rows):
                groups = row.reshape(CONFIG.activation_lanes, CONFIG.column_groups).T
                for group, lanes in enumerate(groups):
                    ends_row = group == CONFIG.column_groups - 1
                    ends_walk = ends_row and index == len(rows) - 1
                    self.beats.append(
                        {"active": 1, "bytes": lanes.tolist(), "ends_row": ends_row, "ends_walk": ends_walk}
                    )
        self.room = ROWS_IN_FLIGHT
        self.place = 0
        bench.add(self)

    def drive(self):
        starts_row = self.place % CONFIG.column_groups == 0
        idle = self.rng.random() < self.idle or self.place == len(self.beats) or (starts_row and not self.room)
        if idle:
            anything = int(self.rng.integers(0, 256))
            self.port.value = pack(self.layout, {"bytes": [anything] * CONFIG.activation_lanes, "ends_row": 1})
            return
        self.room -= starts_row
        self.port.value = pack(self.layout, self.beats[self.place])
        self.place += 1


@cocotb.test()
@STALLS
async def rows_are_written(dut, idle, backpressure):
    bench = await Bench.start(dut, "result_writer")
    rng = random_generator()
    walks, expected = [], []
    addresses = bench.source("addresses")
    for _ in range(WALKS):
        count = int(rng.choice([1, 2, rng.integers(1, 10)]))
        first = int(rng.integers(0, CONFIG.unified_buffer_rows - count + 1))
        rows = rng.integers(0, 256, (count, CONFIG.size), np.uint8)
        walks.append(rows)
        addresses.send(first)
        expected += [(first + index, row.tobytes()) for index, row in enumerate(rows)]
    ends = np.cumsum([len(rows) for rows in walks])
    # The address of a walk must arrive before its first byte.
    await bench.steps(2)
    lanes = Lanes(bench, walks, idle, rng)
    memory = np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    content = []
    writer = RowWriter(bench, "results", memory, backpressure)

    def row_written(count):
        lanes.room += 1
        content.append((writer.written[-1], memory[writer.written[-1]].tobytes()))
        return count == len(writer.written)

    written = Pulses(bench, "written", row_written)
    done = Pulses(bench, "done", lambda count: len(writer.written) == ends[count - 1])
    await bench.until(lambda: done.count == WALKS, 50_000)
    await bench.steps(10)
    assert content == expected
    assert written.count == len(expected)
    assert done.count == WALKS
