"""Weight shifter: moves the next tile from the weight FIFO into the array while the array works."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.skew import Skew
from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup
from openmxu.rtl.weights.transposer import Transposer
from openmxu.rtl.weights.weight_fetcher import weight_row_layout

__all__ = ["WeightShifter"]


class WeightShifter(wiring.Component):
    """Keeps the array's next weights loaded: S cycles for a tile, begun as soon as the previous one is taken.

    Rows of a transposed tile are columns of the array, see :class:`~openmxu.rtl.weights.transposer.Transposer`. Of two
    of them, one follows the other at once, or S cycles later at the earliest.

    Members
    -------
    tiles, read_enable, read_row, read_data, drop
        The read side of the weight FIFO. A tile leaves the FIFO when its last row is read.
    take, tile_coming
        A row of activations whose unified buffer read is granted in this cycle swaps the tile in; only while
        ``loaded``. A row granted in the next cycle may do so, unless the tile is taken in this one.
    shifting
        A tile is being shifted into the array.
    discard
        While set, a tile is discarded as soon as it is loaded.
    loaded
        The array holds a next tile, or will in the next cycle.
    weights, shift
        For the array, skewed.
    transposed
        In cores with Load_Weights: the rows of the oldest tile are columns.
    """

    latency = UnifiedBuffer.read_latency + SystolicDataSetup.latency
    """Cycles from ``take`` to the next tile's first row at the array's edge: as many as for the row of activations that
    swaps, which must not arrive later, see :class:`~openmxu.rtl.matrix.systolic_array.SystolicArray`."""

    sleeps = True
    """See :mod:`openmxu.rtl.simulation.sleeping_units`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "tiles": In(range(config.weight_fifo_tiles + 1)),
                "read_enable": Out(1),
                "read_row": Out(range(config.size)),
                "read_data": In(weight_row_layout(config)),
                "drop": Out(1),
                "tile_coming": Out(1),
                "take": In(1),
                "shifting": Out(1),
                "discard": In(1),
                "loaded": Out(1),
                "weights": Out(data.ArrayLayout(signed(OPERAND_WIDTH), config.size)),
                "shift": Out(config.size),
                **({"transposed": In(1)} if loads_weights(config) else {}),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self.config.size
        reading = Signal()
        row = Signal(range(size), init=size - 1)
        is_second_last_row, is_last_row = Signal(init=size == 2), Signal()
        last = Signal()
        # Once begun, a tile is read without a pause; only before its first row reading may wait.
        loads = is_second_last_row if size > 2 else is_second_last_row & reading
        m.d.comb += [
            last.eq(reading & is_last_row),
            self.read_enable.eq(reading),
            self.read_row.eq(row),
            self.drop.eq(last),
            self.shifting.eq(reading),
            self.tile_coming.eq(self.loaded | loads),
        ]
        # After the last row of a tile comes the first one of the next, however much later.
        with m.If(reading):
            m.d.sync += [row.eq(row - 1), is_second_last_row.eq(row == 2 % size), is_last_row.eq(row == 1)]
        # The row that swaps is a few cycles away from the array: it may start while the tile's last row is read.
        m.d.sync += self.loaded.eq(self.tile_coming & ~(self.take | self.discard))
        with m.If(last):
            m.d.sync += reading.eq(0)

        # `tiles` still counts the tile that leaves in this cycle.
        another = Signal()
        m.d.comb += another.eq(Mux(last, self.tiles > 1, self.tiles != 0))
        starts = another & ((~reading & ~self.loaded) | self.take)
        if loads_weights(self.config):
            turned = self.transposed
            m.submodules.transposer = transposer = Transposer(self.config, self.latency - 1)
            m.d.comb += [
                # The rows of a transposed tile are read the other way round.
                self.read_row.eq(row ^ turned.replicate(len(row))),
                transposer.reads.eq(reading & turned),
                transposer.row.eq(row),
                transposer.ends.eq(last & turned),
                transposer.straight.eq(self.read_data),
                self.weights.eq(transposer.skewed),
            ]
            starts = starts & ~(turned & transposer.is_turning)
        else:
            self._skew(m)
        with m.If(starts):
            m.d.sync += reading.eq(1)

        # One thermometer bit after the other joins: array row k takes part from the k-th row of the tile on.
        taking = Signal(size)
        m.d.comb += taking[0].eq(reading)
        for index in range(1, size):
            m.d.comb += taking[index].eq(reading & (row <= size - 1 - index))

        # A row is read in the cycle after ``take``, and its data is there in the next one.
        shift = taking
        for stage in range(self.latency - 1):
            shift_before, shift = shift, Signal(size, name=f"shift_{stage}")
            m.d.sync += shift.eq(shift_before)
        m.d.comb += self.shift.eq(shift)
        return m

    def _skew(self, m: Module) -> None:
        """Bring rows to the array's edge."""
        m.submodules.skew = skew = Skew(signed(OPERAND_WIDTH), self.config.size)
        operands = self.read_data
        for stage in range(self.latency - 2):
            row_before = operands
            operands = Signal.like(row_before, name=f"operands_{stage}", reset_less=True)
            m.d.sync += operands.eq(row_before)
        m.d.comb += [skew.straight.eq(operands), self.weights.eq(skew.skewed)]
