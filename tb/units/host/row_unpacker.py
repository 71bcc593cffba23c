"""Row unpacker: the bytes of all runs, row by row."""

import cocotb
import numpy as np

from openmxu.rtl.common.run_walker import place_layout
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import pack, row_of
from tb.rack import BEAT_BYTES, ROWS_WIDTH

RUNS = 60


def lane_width(beat_bytes: int) -> int:
    """Width in bits of a row's lane within a beat."""
    return max(0, (beat_bytes // CONFIG.size).bit_length() - 1)


def random_run(rng: np.random.Generator, beat_bytes: int) -> tuple[int, int, int]:
    """Number of rows, lane of the first, and beats of a run."""
    rows, lane = int(rng.integers(1, 1 << ROWS_WIDTH)), int(rng.integers(0, max(1, beat_bytes // CONFIG.size)))
    if rng.random() < 0.4:
        rows = 1
    return rows, lane, -(-(lane + rows) * CONFIG.size // beat_bytes)


def places_of(rows: int, lane: int, beat_bytes: int) -> list[dict[str, int]]:
    """Lane of each row of a run."""
    lanes = max(1, beat_bytes // CONFIG.size)
    return [{"lane": (lane + row) % lanes, "last": row == rows - 1} for row in range(rows)]


async def check_rows(bench: Bench, beat_bytes: int, idle: float, backpressure: float) -> None:
    """Send the places and the beats of random runs, and compare the rows."""
    rng = random_generator()
    size = CONFIG.size
    places, beats = bench.source("places", idle), bench.source("beats", idle)
    rows = bench.sink("rows", backpressure)
    layout = place_layout(lane_width(beat_bytes))
    expected = []
    for _ in range(RUNS):
        count, lane, length = random_run(rng, beat_bytes)
        content = rng.integers(0, 256, length * beat_bytes, np.uint8)
        expected += [row_of(row) for row in content.reshape(-1, size)[lane : lane + count]]
        beats.send(*(row_of(beat) for beat in content.reshape(-1, beat_bytes)))
        places.send(*(pack(layout, place) for place in places_of(count, lane, beat_bytes)))
    await bench.until(lambda: len(rows.received) == len(expected) and places.is_empty and beats.is_empty)
    await bench.steps(5)
    assert rows.received == expected
    if idle == backpressure == 0:
        # One beat or one row per cycle.
        assert bench.cycle <= max(len(beats.sent), len(expected)) + 8


@cocotb.test()
@STALLS
@cocotb.parametrize(beat_bytes=BEAT_BYTES)
async def rows_of_runs(dut, beat_bytes, idle, backpressure):
    await check_rows(await Bench.start(dut, f"row_unpacker_{beat_bytes}"), beat_bytes, idle, backpressure)
