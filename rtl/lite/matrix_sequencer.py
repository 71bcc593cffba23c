"""Matrix sequencer of the lite profile."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.dispatch.commands import matrix_command
from openmxu.rtl.matrix.accumulators import tag_layout

__all__ = ["LiteMatrixSequencer"]


class LiteMatrixSequencer(wiring.Component):
    """Loads the next tile if a MatrixMultiply wants it, and requests its rows.

    What the rows have in common stands in the command until all of it is done; only what begins and ends with each row
    travels with it.

    Parameters
    ----------
    config
        Sizes of the core.
    tag_delay
        Cycles from a row's turn to its tag.

    Members
    -------
    commands
        Taken with the request of the last row; the payload stays as it is until the instruction is done.
    request
        Row addresses for the unified buffer.
    tile_ready, pair, take
        From and to the weights: a tile is there; which two rows of it are to be there in the next cycle; these are the
        tile's last ones.
    load
        For the array: the rows that are there.
    tag
        What the accumulators do with the row whose turn was ``tag_delay`` cycles ago.
    """

    def __init__(self, config: Config, *, tag_delay: int) -> None:
        self._config = config
        self._tag_delay = tag_delay
        super().__init__(
            {
                "commands": In(stream.Signature(matrix_command(config))),
                "request": Out(stream.Signature(config.unified_buffer_address_width)),
                "tile_ready": In(1),
                "pair": Out(range(config.size // 2)),
                "take": Out(1),
                "load": Out(config.size // 2),
                "tag": Out(tag_layout(config)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.commands.p
        pairs = self.config.size // 2
        # Rows, or before them pairs of rows of the tile.
        count = Signal(range(max(pairs, self.config.accumulator_rows + 1)))
        last = Signal()
        granted = Signal()
        m.d.comb += [
            last.eq(count + 1 == command.walk.rows),
            self.request.payload.eq(command.walk.address + count),
            self.pair.eq(count),
            granted.eq(self.request.valid & self.request.ready),
            self.commands.ready.eq(granted & last),
        ]
        reads = Signal()
        m.d.sync += self.load.eq(Cat(reads & (self.pair == pair) for pair in range(pairs)))
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += count.eq(0)
                with m.If(self.commands.valid):
                    m.next = "ROWS"
                    with m.If(command.next_tile):
                        m.next = "TILE"
            with m.State("TILE"):
                with m.If(self.tile_ready):
                    m.d.comb += reads.eq(1)
                    m.d.sync += count.eq(count + 1)
                    with m.If(self.pair == pairs - 1):
                        m.d.comb += self.take.eq(1)
                        m.d.sync += count.eq(0)
                        m.next = "ROWS"
            with m.State("ROWS"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(granted):
                    m.d.sync += count.eq(count + 1)
                    with m.If(last):
                        m.next = "IDLE"

        arrived = Signal(self.config.accumulator_address_width)
        m.d.comb += [
            self.tag.valid.eq(self._delay(m, "valid", granted, self._tag_delay)),
            self.tag.last.eq(self._delay(m, "last", granted & last, self._tag_delay)),
            self.tag.accumulate.eq(command.accumulate),
            self.tag.row.eq(command.walk.target + arrived),
        ]
        with m.If(self.tag.valid):
            m.d.sync += arrived.eq(arrived + 1)
            with m.If(self.tag.last):
                m.d.sync += arrived.eq(0)
        return m

    @staticmethod
    def _delay(m: Module, name: str, bit: Signal, cycles: int) -> Signal:
        """The bit as it was some cycles ago."""
        for stage in range(cycles):
            delayed = Signal(name=f"{name}_{stage}")
            m.d.sync += delayed.eq(bit)
            bit = delayed
        return bit
