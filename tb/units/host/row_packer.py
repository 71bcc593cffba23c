"""Row packer: the rows of all runs, beat by beat, with strobes."""

import cocotb
import numpy as np

from openmxu.rtl.common.interfaces import write_beat_layout
from openmxu.rtl.common.run_walker import place_layout
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import pack, row_of, unpack
from tb.rack import BEAT_BYTES
from tb.units.host.row_unpacker import lane_width, places_of, random_run

RUNS = 60


@cocotb.test()
@STALLS
@cocotb.parametrize(beat_bytes=BEAT_BYTES)
async def beats_of_runs(dut, beat_bytes, idle, backpressure):
    bench = await Bench.start(dut, f"row_packer_{beat_bytes}")
    rng = random_generator()
    size = CONFIG.size
    places, rows = bench.source("places", idle), bench.source("rows", idle)
    beats = bench.sink("beats", backpressure)
    expected = []
    for _ in range(RUNS):
        count, lane, length = random_run(rng, beat_bytes)
        written = np.zeros(length * beat_bytes, bool)
        written[lane * size : (lane + count) * size] = True
        content = np.where(written, rng.integers(0, 256, written.size), 0).astype(np.uint8)
        rows.send(*(row_of(row) for row in content.reshape(-1, size)[lane : lane + count]))
        layout = place_layout(lane_width(beat_bytes))
        places.send(*(pack(layout, place) for place in places_of(count, lane, beat_bytes)))
        for index in range(length):
            part = slice(index * beat_bytes, (index + 1) * beat_bytes)
            expected.append((content[part].tolist(), written[part].tolist(), index == length - 1))
    await bench.until(lambda: len(beats.received) == len(expected) and places.is_empty and rows.is_empty)
    await bench.steps(5)

    got = []
    for payload in beats.received:
        beat = unpack(write_beat_layout(beat_bytes), payload)
        strobes = [bool(beat.strobe >> index & 1) for index in range(beat_bytes)]
        # The values of bytes that are not written do not matter.
        got.append(
            ([beat.data >> 8 * index & 0xFF if s else 0 for index, s in enumerate(strobes)], strobes, bool(beat.last))
        )
    assert got == expected
    if idle == backpressure == 0:
        assert bench.cycle <= max(len(rows.sent), len(expected)) + 8
