"""Host reader: rows of host memory arrive in the unified buffer, in order."""

import cocotb
import numpy as np

from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.memories import ReadMemory, RowWriter
from tb.models.transfers import Transfer, random_transfers
from tb.pulses import Pulses

TRANSFERS = 50

ALTERNATE = {"host_reader": 0.5, "host_reader_small": 0.0}
"""Share of alternate transfers for each unit under test; the small one supports none."""


@cocotb.test()
@STALLS
@cocotb.parametrize(unit=list(ALTERNATE))
async def rows_arrive(dut, unit, idle, backpressure):
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    memory = rng.integers(0, 256, 1021, np.uint8)
    rows = np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    host = ReadMemory(bench, "memory", memory, CONFIG.host_address_width, CONFIG.host_data_bytes, idle)
    buffer = RowWriter(bench, "rows", rows, backpressure)
    commands = bench.source("commands", idle)
    transfers = random_transfers(rng, TRANSFERS, memory, ALTERNATE[unit])
    written = np.cumsum([transfer.rows for transfer in transfers])
    # A transfer is done in the cycle in which its last row is written.
    done = Pulses(bench, "done", lambda count: len(buffer.written) == written[count - 1])
    commands.send(*(transfer.payload for transfer in transfers))
    await bench.until(lambda: done.count == TRANSFERS)
    await bench.steps(20)

    expected = np.zeros_like(rows)
    for transfer in transfers:
        for row, address in enumerate(transfer.addresses):
            expected[transfer.unified_buffer + row] = memory[address : address + CONFIG.size]
    assert np.array_equal(rows, expected)
    assert buffer.written == [t.unified_buffer + row for t in transfers for row in range(t.rows)]
    assert host.bursts == [burst for transfer in transfers for burst in transfer.bursts]
    assert host.is_idle
    assert done.count == TRANSFERS


@cocotb.test()
async def no_cycle_is_lost(dut):
    """Consecutive transfers keep either the bus or the unified buffer busy in every cycle."""
    bench = await Bench.start(dut, "host_reader")
    memory = random_generator().integers(0, 256, 2048, np.uint8)
    ReadMemory(bench, "memory", memory, CONFIG.host_address_width, CONFIG.host_data_bytes, 0.0)
    buffer = RowWriter(bench, "rows", np.zeros((CONFIG.unified_buffer_rows, CONFIG.size), np.uint8), 0.0)
    commands = bench.source("commands")
    commands.send(*(Transfer(0, 0, 16, 0, 0).payload for _ in range(8)))
    await bench.until(lambda: len(buffer.written) == 8 * 16)
    cycles = 8 * 16 * max(1, CONFIG.size // CONFIG.host_data_bytes)
    assert bench.cycle <= cycles + 16
