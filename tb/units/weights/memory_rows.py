"""Memory rows: the bytes of all runs, row by row, behind a register."""

import cocotb

from tb.bench import STALLS, Bench
from tb.rack import BEAT_BYTES
from tb.units.host.row_unpacker import check_rows


@cocotb.test()
@STALLS
@cocotb.parametrize(beat_bytes=BEAT_BYTES)
async def rows_of_runs(dut, beat_bytes, idle, backpressure):
    await check_rows(await Bench.start(dut, f"memory_rows_{beat_bytes}"), beat_bytes, idle, backpressure)
