"""Unified buffer: arbitration never loses or reorders a row, and latency and priority are as documented."""

from itertools import pairwise

import cocotb
import numpy as np

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.models.payloads import row_of
from tb.rack import READERS, WRITERS

REQUESTS = 250
FEW_ROWS = 12

LATENCIES = {
    "unified_buffer": UnifiedBuffer.read_latency,
    "unified_buffer_ice40": UnifiedBuffer.read_latency,
    "unified_buffer_small": UnifiedBuffer.small_read_latency,
    "unified_buffer_small_ice40": UnifiedBuffer.small_read_latency,
}
"""Read latency of each unit under test."""


def write_payload(address, row):
    """A write request."""
    return address | row << CONFIG.unified_buffer_address_width


@cocotb.test()
@STALLS
@cocotb.parametrize(unit=list(LATENCIES))
async def every_row_comes_back(dut, idle, backpressure, unit):
    """Here ``backpressure`` is the probability that a reader pauses, since responses are always accepted.

    If a row is read in the cycle in which it is written, the old and the new content are both accepted. (Memories with
    one port avoid this case.)
    """
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    writers = {name: bench.source(f"write_{name}__request", idle) for name in WRITERS}
    readers = {name: bench.source(f"read_{name}__request", backpressure) for name in READERS}
    responses = {name: bench.sink(f"read_{name}__response") for name in READERS}
    history = {address: [] for address in range(FEW_ROWS)}  # cycle and row of every write

    def random_row():
        return row_of(rng.integers(0, 256, CONFIG.size, np.uint8))

    writers["host"].send(*(write_payload(address, random_row()) for address in range(FEW_ROWS)))
    await bench.until(lambda: writers["host"].is_empty)
    for source in writers.values():
        addresses = rng.integers(0, FEW_ROWS, REQUESTS).tolist()
        source.send(*(write_payload(address, random_row()) for address in addresses))
    for source in readers.values():
        source.send(*rng.integers(0, FEW_ROWS, REQUESTS).tolist())
    await bench.until(lambda: all(source.is_empty for source in (*writers.values(), *readers.values())))
    await bench.steps(LATENCIES[unit] + 2)

    mask = (1 << CONFIG.unified_buffer_address_width) - 1
    for source in writers.values():
        for cycle, payload in zip(source.times, source.sent, strict=True):
            history[payload & mask].append((cycle, payload & ~mask))
    for name, source in readers.items():
        sink = responses[name]
        assert sink.times == [cycle + LATENCIES[unit] for cycle in source.times], name
        for cycle, address, row in zip(source.times, source.sent, sink.received, strict=True):
            writes = sorted(history[address])
            before = [content for when, content in writes if when < cycle]
            now = [content for when, content in writes if when == cycle]
            assert row << CONFIG.unified_buffer_address_width in (before[-1], *now), (name, address, cycle)


@cocotb.test()
async def the_first_reader_never_waits_and_streams_share_banks(dut):
    """Two streams of consecutive rows: the second one loses at most one cycle if there is more than one bank."""
    bench = await Bench.start(dut, "unified_buffer")
    length = CONFIG.unified_buffer_rows // 2
    first, second = bench.source("read_matrix__request"), bench.source("read_host__request")
    bench.sink("read_matrix__response")
    bench.sink("read_host__response")
    first.send(*range(length))
    second.send(*range(length))
    await bench.until(lambda: second.is_empty)
    assert all(later == earlier + 1 for earlier, later in pairwise(first.times))
    assert len(first.times) == length
    lost = second.times[-1] - first.times[0] - (length - 1)
    assert lost <= (1 if CONFIG.unified_buffer_banks > 1 else length)
