"""Matrix sequencer of the dense profile."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.accumulators import tag_layout
from openmxu.rtl.commands import matrix_command
from openmxu.rtl.systolic_data_setup import OperandFormat
from openmxu.rtl.unified_buffer import UnifiedBuffer

__all__ = ["DenseMatrixSequencer"]


class DenseMatrixSequencer(wiring.Component):
    """Requests the rows of one MatrixMultiply.

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
    tile_ready, take
        From and to the weight shifter.
    format, swap
        Of the row whose turn was ``UnifiedBuffer.read_latency`` cycles ago.
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
                "take": Out(1),
                "format": Out(OperandFormat),
                "swap": Out(1),
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
        requested = Signal(range(self.config.accumulator_rows + 1))
        first, last = Signal(), Signal()
        granted = Signal()
        m.d.comb += [
            first.eq(requested == 0),
            last.eq(requested + 1 == command.walk.rows),
            self.request.payload.eq(command.walk.address + requested),
            self.request.valid.eq(self.commands.valid & (~first | ~command.next_tile | self.tile_ready)),
            granted.eq(self.request.valid & self.request.ready),
            self.commands.ready.eq(granted & last),
            self.take.eq(granted & first & command.next_tile),
            self.format.eq(command.format),
        ]
        with m.If(granted):
            m.d.sync += requested.eq(requested + 1)
            with m.If(last):
                m.d.sync += requested.eq(0)
        m.d.comb += self.swap.eq(self._delay(m, "swap", self.take, UnifiedBuffer.read_latency))

        arrived = Signal(self.config.accumulator_address_width)
        m.d.comb += [
            self.tag.valid.eq(self._delay(m, "valid", granted, self._tag_delay)),
            self.tag.last.eq(self._delay(m, "last", granted & last, self._tag_delay)),
            self.tag.accumulate.eq(command.accumulate),
            self.tag.row.eq(command.accumulator + arrived),
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
