"""Result writer: bytes of the lanes become rows at the addresses of their walk."""

import cocotb
import numpy as np

from openmxu.rtl.activation.activation_datapath import result_beat_layout
from openmxu.rtl.activation.result_writer import ResultWriter, destination_layout
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.memories import RowWriter
from tb.models.payloads import pack
from tb.pulses import Pulses

WALKS = 60


class Lanes(Agent):
    """Drives the bytes of rows group by group, with random pauses between beats; each walk has the number of the row
    that turns."""

    def __init__(self, bench, walks, idle, rng):
        self.bench, self.idle, self.rng = bench, idle, rng
        self.port = bench.port("bytes")
        self.layout = result_beat_layout(CONFIG)
        self.beats = []
        self.ends = []  # the cycles in which a row's last byte is there
        for rows, turn in walks:
            for index, row in enumerate(rows):
                groups = row.reshape(CONFIG.activation_lanes, CONFIG.column_groups).T
                for group, lanes in enumerate(groups):
                    ends_row = group == CONFIG.column_groups - 1
                    ends_walk = ends_row and index == len(rows) - 1
                    flags = {"ends_row": ends_row, "ends_walk": ends_walk, "turns": index == turn}
                    self.beats.append({"active": 1, "bytes": lanes.tolist(), **flags})
        self.place = 0
        bench.add(self)

    def drive(self):
        if self.rng.random() < self.idle or self.place == len(self.beats):
            anything = int(self.rng.integers(0, 256))
            self.port.value = pack(self.layout, {"bytes": [anything] * CONFIG.activation_lanes, "ends_row": 1})
            return
        beat = self.beats[self.place]
        self.port.value = pack(self.layout, beat)
        if beat["ends_row"]:
            self.ends.append(self.bench.next_cycle)
        self.place += 1


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.7])
async def rows_are_written(dut, idle):
    bench = await Bench.start(dut, "result_writer")
    rng = random_generator()
    walks, expected = [], []
    destinations = bench.source("destinations")
    for _ in range(WALKS):
        count = int(rng.choice([1, 2, rng.integers(1, 10)]))
        first = int(rng.integers(0, CONFIG.unified_buffer_rows - count + 1))
        rows = rng.integers(0, 256, (count, CONFIG.size), np.uint8)
        by_parity = int(rng.integers(2))
        places = [*range(0, count, 2), *range(1, count, 2)] if by_parity else range(count)
        walks.append((rows, (count - 1) // 2 if by_parity else None))
        destinations.send(pack(destination_layout(CONFIG), {"first": first, "by_parity": by_parity}))
        expected += [(first + place, row.tobytes()) for place, row in zip(places, rows, strict=True)]
    ends = np.cumsum([len(rows) for rows, _ in walks])
    # The address of a walk must arrive before its first byte.
    await bench.steps(2)
    lanes = Lanes(bench, walks, idle, rng)
    memory = np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    content = []
    writer = RowWriter(bench, "results", memory, 0.0)

    def walk_ends(count):
        return len(writer.written) == ends[count - 1]

    done = Pulses(bench, "done", walk_ends)
    while done.count < WALKS:
        await bench.steps(1)
        content += [(address, memory[address].tobytes()) for address in writer.written[len(content) :]]
    await bench.steps(10)
    assert content == expected
    assert writer.requests.times == [cycle + ResultWriter.latency for cycle in lanes.ends]
    assert done.count == WALKS
