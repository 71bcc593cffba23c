"""A bank of the unified buffer."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config

__all__ = ["UnifiedBufferBank"]


class UnifiedBufferBank(wiring.Component):
    """One bank: a block RAM with one read and one write port.

    A read and a write of the same row in one cycle give either value. This never matters, because the scoreboard lets
    no two conflicting instructions run at the same time.

    Parameters
    ----------
    columns
        Memories side by side, each with as many bits of a row.

    Members
    -------
    read_enable, read_address, read_data
        The row comes in the next cycle.
    write_enable, write_address, write_data
        Write a row.
    """

    is_single_ported = False
    """Whether the bank serves only one access per cycle."""

    def __init__(self, config: Config, *, columns: int = 1) -> None:
        self._columns = columns
        self._depth = config.unified_buffer_rows // config.unified_buffer_banks
        self._width = 8 * config.size
        address = range(self._depth)
        super().__init__(
            {
                "read_enable": In(1),
                "read_address": In(address),
                "read_data": Out(self._width),
                "write_enable": In(1),
                "write_address": In(address),
                "write_data": In(self._width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = self._width // self._columns
        for column in range(self._columns):
            name = "memory" if self._columns == 1 else f"memory_{column}"
            m.submodules[name] = memory = Memory(shape=width, depth=self._depth, init=[])
            read, write = memory.read_port(), memory.write_port()
            m.d.comb += [
                *(read.en.eq(self.read_enable), read.addr.eq(self.read_address)),
                *(write.en.eq(self.write_enable), write.addr.eq(self.write_address)),
                self.read_data.word_select(column, width).eq(read.data),
                write.data.eq(self.write_data.word_select(column, width)),
            ]
        return m
