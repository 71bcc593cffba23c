"""Row loader: every byte of the rows is written to the right place in the parameter memory or a table."""

import cocotb
import numpy as np

from openmxu.arch.effects import PARAMETER_ROWS, TABLE_BYTES, TABLES, table_rows
from openmxu.rtl.activation.parameter_memory import parameter_write_layout
from openmxu.rtl.activation.row_loader import load_layout
from openmxu.rtl.activation.table_memory import table_word_bytes, table_write_layout
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.memories import RowReader
from tb.models.payloads import pack, unpack

LOADS = 16


class Memories(Agent):
    """Models of the parameter memory (set, column, byte) and the tables."""

    def __init__(self, bench):
        self.parameters_port, self.table_port = bench.port("parameters"), bench.port("table")
        self.parameters = np.zeros((CONFIG.parameter_sets, CONFIG.size, PARAMETER_ROWS), np.uint8)
        self.tables = np.zeros(TABLES * TABLE_BYTES, np.uint8)
        bench.add(self)

    def sample(self):
        write = unpack(parameter_write_layout(CONFIG), int(self.parameters_port.value))
        if write.enable:
            number, group = divmod(write.address, CONFIG.column_groups)
            self.parameters[number, group :: CONFIG.column_groups, write.byte] = write.data
        write = unpack(table_write_layout(CONFIG), int(self.table_port.value))
        if write.enable:
            word = table_word_bytes(CONFIG)
            self.tables[word * write.address : word * (write.address + 1)] = write.data


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.6])
async def rows_are_loaded(dut, stall):
    bench = await Bench.start(dut, "row_loader")
    rng = random_generator()
    rows = rng.integers(0, 256, (CONFIG.unified_buffer_rows, CONFIG.size), np.uint8)
    memories = Memories(bench)
    RowReader(bench, "rows", rows, UnifiedBuffer.read_latency, stall)
    loads = bench.source("loads", stall)
    parameters, tables = memories.parameters.copy(), memories.tables.reshape(TABLES, TABLE_BYTES).copy()
    for number in range(1, LOADS + 1):
        is_table, table_number = bool(rng.integers(2)), int(rng.integers(TABLES))
        count = int(rng.integers(1, CONFIG.parameter_sets + 1))
        first = int(rng.integers(0, CONFIG.parameter_sets - count + 1))
        used = table_rows(CONFIG.size) if is_table else PARAMETER_ROWS * count
        row = int(rng.integers(0, CONFIG.unified_buffer_rows - used + 1))
        block = rows[row : row + used]
        if is_table:
            tables[table_number] = block.reshape(-1)
        else:
            sets = block.reshape(count, PARAMETER_ROWS, CONFIG.size)
            parameters[first : first + count] = sets.transpose(0, 2, 1)
        load = {"unified_buffer": row, "is_table": is_table, "first": first, "count": count}
        loads.send(pack(load_layout(CONFIG), load | {"table_number": table_number}))
        await bench.until(lambda number=number: len(loads.sent) == number, 50_000)
        assert np.array_equal(memories.parameters, parameters)
        assert np.array_equal(memories.tables, tables.reshape(-1))
