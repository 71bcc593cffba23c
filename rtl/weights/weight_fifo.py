"""Weight FIFO: whole tiles of operands in block RAM."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.weights.weight_fetcher import weight_row_layout

__all__ = ["WeightFIFO"]


class WeightFIFO(wiring.Component):
    """Holds ``weight_fifo_tiles`` tiles; a tile can be read when all of it has arrived, last row first.

    Members
    -------
    rows
        Rows of tiles, row 0 first. Always ready: the writer must not exceed the number of tiles.
    tiles
        Number of whole tiles held.
    read_enable, read_row
        Read row ``read_row`` of the oldest tile.
    read_data
        The row, one cycle later.
    drop
        Remove the oldest tile.
    transposed, read_transposed
        In cores with Load_Weights: whether ``rows``, and the rows of the oldest tile, are columns of their tile.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "rows": In(stream.Signature(weight_row_layout(config))),
                "tiles": Out(range(config.weight_fifo_tiles + 1)),
                "read_enable": In(1),
                "read_row": In(range(config.size)),
                "read_data": Out(weight_row_layout(config)),
                "drop": In(1),
                **({"transposed": In(1), "read_transposed": Out(1)} if loads_weights(config) else {}),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, depth = self.config.size, self.config.weight_fifo_tiles
        row_bits = ceil_log2(size)

        # Wide and shallow: without the attribute, synthesis would build it from logic.
        m.submodules.memory = memory = Memory(
            shape=weight_row_layout(self.config).size, depth=depth * size, init=[], attrs={"ram_style": "block"}
        )
        write = memory.write_port()
        read = memory.read_port()

        write_tile = Signal(range(depth))
        write_row = Signal(row_bits)
        read_tile = Signal(range(depth))
        complete = Signal()
        m.d.comb += [
            self.rows.ready.eq(1),
            write.en.eq(self.rows.valid),
            write.addr.eq((write_tile << row_bits) | write_row),
            write.data.eq(Value.cast(self.rows.payload)),
            complete.eq(self.rows.valid & (write_row == size - 1)),
            read.en.eq(self.read_enable),
            read.addr.eq((read_tile << row_bits) | self.read_row),
            Value.cast(self.read_data).eq(read.data),
        ]
        if loads_weights(self.config):
            are_transposed = Signal(depth, reset_less=True)
            m.d.comb += self.read_transposed.eq(are_transposed.bit_select(read_tile, 1))
            with m.If(complete):
                m.d.sync += are_transposed.bit_select(write_tile, 1).eq(self.transposed)
        with m.If(self.rows.valid):
            m.d.sync += write_row.eq(write_row + 1)
        with m.If(complete):
            m.d.sync += write_tile.eq(write_tile + 1)
            with m.If(write_tile == depth - 1):
                m.d.sync += write_tile.eq(0)
        with m.If(self.drop):
            m.d.sync += read_tile.eq(read_tile + 1)
            with m.If(read_tile == depth - 1):
                m.d.sync += read_tile.eq(0)
        m.d.sync += self.tiles.eq(self.tiles + complete - self.drop)
        return m
