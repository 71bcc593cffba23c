"""Table memory: words are written, bytes are read."""

import cocotb
import numpy as np

from openmxu.arch.effects import TABLE_BYTES, TABLES
from openmxu.rtl.activation.table_memory import TableMemory, table_word_bytes, table_write_layout
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack

ENTRIES = TABLES * TABLE_BYTES
READS = ENTRIES + 400


@cocotb.test()
async def entries_are_looked_up(dut):
    bench = await Bench.start(dut, "table_memory")
    rng = random_generator()
    word, layout = table_word_bytes(CONFIG), table_write_layout(CONFIG)
    # Contents after power-on; no test of this unit has run before.
    await read_all(bench, rng, np.zeros(ENTRIES, np.uint8), [0] * READS)
    tables = rng.integers(0, 256, ENTRIES)
    writes = [
        pack(layout, {"enable": 1, "address": place, "data": tables[word * place : word * (place + 1)].tolist()})
        for place in rng.permutation(ENTRIES // word).tolist()
    ]
    await bench.play({"write": writes, "table": [0] * len(writes), "index": [0] * len(writes)}, [])
    disabled = [
        pack(layout, {"address": int(rng.integers(0, ENTRIES // word)), "data": rng.integers(0, 256, word).tolist()})
        for _ in range(READS)
    ]
    await read_all(bench, rng, tables, disabled)


async def read_all(bench, rng, tables, writes):
    """Check every entry in random order, with ``writes`` at the write port."""
    indices = np.concatenate([rng.permutation(ENTRIES), rng.integers(0, ENTRIES, READS - ENTRIES)])
    numbers, places = np.divmod(indices, TABLE_BYTES)
    inputs = {"write": writes, "table": numbers.tolist(), "index": places.tolist()}
    seen = await bench.play(inputs, ["value"])
    latency = TableMemory.read_latency
    assert seen["value"][latency:] == tables[indices[: READS - latency]].tolist()
