"""Table memory: the 256 bytes that results are looked up in."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.legality import TABLE_BYTES

__all__ = ["TableMemory", "table_word_bytes", "table_write_layout"]


def table_word_bytes(config: Config) -> int:
    """Bytes that are written together; a row of the unified buffer holds a whole number of such words."""
    return min(4, config.size)


def table_write_layout(config: Config) -> data.StructLayout:
    """A write of one word of the table."""
    word = table_word_bytes(config)
    return data.StructLayout({"enable": 1, "address": range(TABLE_BYTES // word), "data": data.ArrayLayout(8, word)})


class TableMemory(wiring.Component):
    """A table for one lane; zero after power-on. Block RAM.

    A word read while it is written gives either value; the activation unit does not compute while it loads.

    Members
    -------
    index
        Of the entry to read.
    value
        The entry, ``read_latency`` cycles later.
    write
        Write entries ``address`` times the word's size and those that follow; see :func:`table_write_layout`.
    """

    read_latency = 2
    """Cycles from index to value; in the second one a byte of the word is selected."""

    def __init__(self, config: Config) -> None:
        self._word_bytes = table_word_bytes(config)
        super().__init__({"index": In(8), "value": Out(8), "write": In(table_write_layout(config))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self._word_bytes
        select_width = ceil_log2(word)
        m.submodules.memory = memory = Memory(shape=8 * word, depth=TABLE_BYTES // word, init=[])
        read = memory.read_port()
        write = memory.write_port()
        select = Signal(select_width, reset_less=True)
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(self.index[select_width:]),
            write.en.eq(self.write.enable),
            write.addr.eq(self.write.address),
            write.data.eq(self.write.data),
        ]
        m.d.sync += [select.eq(self.index[:select_width]), self.value.eq(read.data.word_select(select, 8))]
        return m
