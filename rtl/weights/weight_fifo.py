"""Weight FIFO: whole tiles of operands in block RAM."""

from amaranth.hdl import Module, Mux, Signal, Value
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
        Rows of tiles, row 0 first; in cores without Load_Weights tile after tile. Always ready: the writer must not
        exceed the number of tiles.
    slot, row, transposed
        In cores with Load_Weights: the slot of the row's tile, one after the other in the order of reading; the row's
        number; whether the tile's rows are columns. Rows of two tiles may come in turn.
    tiles
        Number of whole tiles held before which none is missing.
    read_enable, read_row
        Read row ``read_row`` of the oldest tile.
    read_data
        The row, one cycle later.
    drop
        Remove the oldest tile.
    read_transposed
        In cores with Load_Weights: the rows of the oldest tile are columns.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        loads = {
            "slot": In(range(config.weight_fifo_tiles)),
            "row": In(range(config.size)),
            "transposed": In(1),
            "read_transposed": Out(1),
        }
        super().__init__(
            {
                "rows": In(stream.Signature(weight_row_layout(config), always_ready=True)),
                "tiles": Out(range(config.weight_fifo_tiles + 1)),
                "read_enable": In(1),
                "read_row": In(range(config.size)),
                "read_data": Out(weight_row_layout(config)),
                "drop": In(1),
                **(loads if loads_weights(config) else {}),
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

        # The tile that comes next in the order of reading.
        next_tile, read_tile = Signal(range(depth)), Signal(range(depth))
        write_tile, write_row = next_tile, Signal(row_bits)
        comes = Signal()
        if loads_weights(self.config):
            write_tile, write_row = self.slot, self.row
            self._follow_order(m, next_tile, comes)
            are_transposed = Signal(depth, reset_less=True)
            m.d.comb += self.read_transposed.eq(are_transposed.bit_select(read_tile, 1))
            # A cycle behind the row, which is known late in a cycle: a tile has more rows than one.
            was_valid = Signal()
            slot_before = Signal.like(self.slot, reset_less=True)
            transposed_before = Signal(reset_less=True)
            m.d.sync += [
                was_valid.eq(self.rows.valid),
                slot_before.eq(self.slot),
                transposed_before.eq(self.transposed),
            ]
            with m.If(was_valid):
                m.d.sync += are_transposed.bit_select(slot_before, 1).eq(transposed_before)
        else:
            m.d.comb += comes.eq(self.rows.valid & (write_row == size - 1))
            with m.If(self.rows.valid):
                m.d.sync += write_row.eq(write_row + 1)
        m.d.comb += [
            write.en.eq(self.rows.valid),
            write.addr.eq((write_tile << row_bits) | write_row),
            write.data.eq(Value.cast(self.rows.payload)),
            read.en.eq(self.read_enable),
            read.addr.eq((read_tile << row_bits) | self.read_row),
            Value.cast(self.read_data).eq(read.data),
        ]
        for tile, moves in ((next_tile, comes), (read_tile, self.drop)):
            with m.If(moves):
                m.d.sync += tile.eq(Mux(tile == depth - 1, 0, tile + 1))
        # Whether a tile comes is known late in a cycle, so both numbers are ready.
        with m.If(comes):
            m.d.sync += self.tiles.eq(Mux(self.drop, self.tiles, self.tiles + 1))
        with m.Else():
            m.d.sync += self.tiles.eq(Mux(self.drop, self.tiles - 1, self.tiles))
        return m

    def _follow_order(self, m: Module, next_tile: Value, comes: Value) -> None:
        """Whether the next tile is whole: its last row comes, or had come before that of an earlier tile."""
        is_early = Signal(self.config.weight_fifo_tiles)
        ends, was_early = Signal(), Signal()
        is_next = self.slot == next_tile
        m.d.comb += [
            ends.eq(self.rows.valid & (self.row == self.config.size - 1)),
            was_early.eq(is_early.bit_select(next_tile, 1)),
            comes.eq(was_early | (ends & is_next)),
        ]
        with m.If(ends & ~is_next):
            m.d.sync += is_early.bit_select(self.slot, 1).eq(1)
        with m.If(was_early):
            m.d.sync += is_early.bit_select(next_tile, 1).eq(0)
