"""Host writer: rows of the unified buffer arrive in host memory."""

import cocotb
import numpy as np

from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.dispatch.commands import loads_weights
from tb.bench import CONFIG, STALLS, Bench, random_generator
from tb.memories import RowReader, WriteMemory
from tb.models.transfers import Transfer, random_transfers
from tb.pulses import Pulses

TRANSFERS = 50

ALTERNATE = {"host_writer": 0.5, "host_writer_small": 0.0}
"""Share of alternate transfers for each unit under test; the small one supports none."""


@cocotb.test()
@STALLS
@cocotb.parametrize(unit=list(ALTERNATE))
async def rows_arrive(dut, unit, idle, backpressure):
    bench = await Bench.start(dut, unit)
    rng = random_generator()
    memory = rng.integers(0, 256, 1021, np.uint8)
    rows = rng.integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    transfers = random_transfers(rng, TRANSFERS, memory, ALTERNATE[unit])
    if loads_weights(CONFIG) and unit == "host_writer":
        transfers = [
            load if rng.random() < 0.4 else transfer for load, transfer in zip(loads(rng), transfers, strict=True)
        ]
    expected, tiles = memory.copy(), []
    for transfer in transfers:
        if transfer.to_weights:
            tiles += [
                int.from_bytes(rows[transfer.unified_buffer + row].tobytes(), "little") for row in range(CONFIG.size)
            ]
            continue
        for row, address in enumerate(transfer.addresses):
            expected[address : address + CONFIG.size] = rows[transfer.unified_buffer + row]

    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, idle)
    host = WriteMemory(bench, "memory", memory, CONFIG.host_address_width, CONFIG.host_data_bytes, backpressure)
    commands = bench.source("commands", idle)
    acknowledged = np.cumsum([0 if transfer.to_weights else len(transfer.bursts) for transfer in transfers])
    loaded = np.cumsum([CONFIG.size * transfer.to_weights for transfer in transfers])
    weight_rows = bench.sink("weight_rows", backpressure) if loads_weights(CONFIG) else None
    # The host writer is done one cycle after its last burst is acknowledged, the small one in the same cycle.
    late = int(unit == "host_writer")

    def is_due(count):
        number = count - 1
        if transfers[number].to_weights:
            return weight_rows.times[loaded[number] - 1] == bench.cycle - late
        return host.done.times[acknowledged[number] - 1] == bench.cycle - late

    done = Pulses(bench, "done", is_due)
    commands.send(*(transfer.write_payload for transfer in transfers))
    await bench.until(lambda: done.count == TRANSFERS)
    await bench.steps(20)

    assert np.array_equal(memory, expected)
    assert host.bursts == [burst for transfer in transfers if not transfer.to_weights for burst in transfer.bursts]
    assert weight_rows is None or weight_rows.received == tiles
    assert host.is_idle
    assert done.count == TRANSFERS


def loads(rng):
    """Load_Weights commands."""
    places = CONFIG.unified_buffer_rows - CONFIG.size + 1
    return [Transfer(0, int(rng.integers(places)), CONFIG.size, 0, 0, to_weights=1) for _ in range(TRANSFERS)]


@cocotb.test()
async def no_cycle_is_lost(dut):
    bench = await Bench.start(dut, "host_writer")
    rows = random_generator().integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, 0.0)
    host = WriteMemory(
        bench, "memory", np.zeros(2048, np.uint8), CONFIG.host_address_width, CONFIG.host_data_bytes, 0.0
    )
    commands = bench.source("commands")
    commands.send(*(Transfer(0, 0, 16, 0, 0).write_payload for _ in range(8)))
    await bench.until(lambda: len(host.done.sent) == 8)
    cycles = 8 * 16 * max(1, CONFIG.size // CONFIG.host_data_bytes)
    assert bench.cycle <= cycles + 24
