"""Table memory: words are written, bytes are read."""

import cocotb
import numpy as np

from openmxu.arch.effects import TABLE_BYTES
from openmxu.rtl.activation.table_memory import TableMemory, table_word_bytes, table_write_layout
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack

READS = 600


@cocotb.test()
async def entries_are_looked_up(dut):
    bench = await Bench.start(dut, "table_memory")
    rng = random_generator()
    word, layout = table_word_bytes(CONFIG), table_write_layout(CONFIG)
    # Contents after power-on; no test of this unit has run before.
    await read_all(bench, rng, np.zeros(TABLE_BYTES, np.uint8), [0] * READS)
    table = rng.integers(0, 256, TABLE_BYTES)
    writes = [
        pack(layout, {"enable": 1, "address": place, "data": table[word * place : word * (place + 1)].tolist()})
        for place in rng.permutation(TABLE_BYTES // word).tolist()
    ]
    await bench.play({"write": writes, "index": [0] * len(writes)}, [])
    disabled = [
        pack(
            layout, {"address": int(rng.integers(0, TABLE_BYTES // word)), "data": rng.integers(0, 256, word).tolist()}
        )
        for _ in range(READS)
    ]
    await read_all(bench, rng, table, disabled)


async def read_all(bench, rng, table, writes):
    """Check every entry in random order, with ``writes`` at the write port."""
    indices = np.concatenate([rng.permutation(TABLE_BYTES), rng.integers(0, TABLE_BYTES, READS - TABLE_BYTES)])
    seen = await bench.play({"write": writes, "index": indices.tolist()}, ["value"])
    latency = TableMemory.read_latency
    assert seen["value"][latency:] == table[indices[: READS - latency]].tolist()
