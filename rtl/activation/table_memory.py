"""Table memory: the lookup tables of 256 bytes for results."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import TABLE_BYTES, TABLES

__all__ = ["TableMemory", "table_word_bytes", "table_write_layout"]


def table_word_bytes(config: Config) -> int:
    """Bytes that are written together; a row of the unified buffer holds a whole number of such words."""
    return min(4, config.size)


def table_write_layout(config: Config) -> data.StructLayout:
    """A write of one word of a table; table after table."""
    word = table_word_bytes(config)
    return data.StructLayout(
        {"enable": 1, "address": range(TABLES * TABLE_BYTES // word), "data": data.ArrayLayout(8, word)}
    )


class TableMemory(wiring.Component):
    """The tables of one lane, in block RAM, of which a single one would fill little; zero after power-on.

    A word read while it is written gives either value; the activation unit does not compute while it loads.

    Members
    -------
    table, index
        Numbers of the table and of its entry to read.
    value
        The entry, ``read_latency`` cycles later.
    write
        Write a word of entries, from entry ``address`` times the word's size on; see :func:`table_write_layout`.
    """

    read_latency = 3
    """Cycles from index to value; the first is the block RAM's, the third selects a byte of the word."""

    def __init__(self, config: Config) -> None:
        self._word_bytes = table_word_bytes(config)
        super().__init__(
            {"table": In(range(TABLES)), "index": In(8), "value": Out(8), "write": In(table_write_layout(config))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self._word_bytes
        select_width = ceil_log2(word)
        m.submodules.memory = memory = Memory(shape=8 * word, depth=TABLES * TABLE_BYTES // word, init=[])
        read = memory.read_port()
        write = memory.write_port()
        word_read = Signal(8 * word, reset_less=True)
        selects = [self.index[:select_width]]
        for stage in range(2):
            selects.append(Signal(select_width, name=f"select_{stage}", reset_less=True))
            m.d.sync += selects[-1].eq(selects[-2])
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(Cat(self.index[select_width:], self.table)),
            write.en.eq(self.write.enable),
            write.addr.eq(self.write.address),
            write.data.eq(self.write.data),
        ]
        m.d.sync += [word_read.eq(read.data), self.value.eq(word_read.word_select(selects[-1], 8))]
        return m
