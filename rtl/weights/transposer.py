"""Transposer: skews the rows of a tile for the array, and turns rows into columns."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.common.skew import Skew
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.weights.weight_fetcher import weight_row_layout

__all__ = ["Transposer"]


class Transposer(wiring.Component):
    """Delays column n by n cycles; of a transposed tile, column n is row n, the weight of the last input first.

    With lane k behind S - 1 - k registers, rows of a transposed tile that follow each other leave a diagonal in each
    cycle: weight k of row n lies in lane k and belongs to column n, one column further than in the cycle before. So a
    rotation, by one place more in each cycle, brings every weight to its column in time. It goes on for S cycles after
    the last row, in which another tile may begin, but a transposed one only if it begins at once.

    Members
    -------
    reads, row
        A row of a transposed tile is read; its number counted from the last one, in every cycle.
    ends
        Set with the last row.
    is_turning
        A transposed tile must not begin in the next cycle.
    straight
        The row, whatever its tile, a cycle later.
    skewed
        Column n of the row, ``latency`` + n cycles after it was read.
    """

    def __init__(self, config: Config, latency: int) -> None:
        self._config = config
        self._latency = latency
        operands = weight_row_layout(config)
        super().__init__(
            {
                "reads": In(1),
                "row": In(range(config.size)),
                "ends": In(1),
                "is_turning": Out(1),
                "straight": In(operands),
                "skewed": Out(operands),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self._config.size
        m.submodules.skew = skew = Skew(signed(OPERAND_WIDTH), size)

        # Places of the rotation: those of the row, then S - 1 to 0 once more.
        places, following = Signal(range(size)), Signal(range(size))
        goes_on = Signal()
        m.d.comb += [
            places.eq(Mux(self.reads, self.row, following)),
            self.is_turning.eq(goes_on & (places != 0)),
        ]
        with m.If(self.reads | goes_on):
            m.d.sync += following.eq(places - 1)
        with m.If(self.ends):
            m.d.sync += goes_on.eq(1)
        with m.Elif(places == 0):
            m.d.sync += goes_on.eq(0)

        # The row comes a cycle after it was read, late in the cycle, and a register follows the rotation.
        before = self._latency - 2
        turned = delayed(m, self.reads, before, "turned")
        row = delayed(m, self.straight, before - 1, "row")
        ordered = Signal(weight_row_layout(self._config), name="ordered", reset_less=True)
        for lane in range(size):
            m.d.sync += ordered[lane].eq(Mux(turned, row[size - 1 - lane], row[lane]))
        m.d.comb += skew.straight.eq(ordered)

        rotated = Signal(weight_row_layout(self._config), name="diagonal")
        m.d.comb += [rotated[column].eq(skew.skewed[size - 1 - column]) for column in range(size)]
        for index, bit in enumerate(delayed(m, places, before + 1, "amount")):
            before_it, rotated = rotated, Signal.like(rotated, name=f"rotated_{index}")
            m.d.comb += [
                rotated[column].eq(Mux(bit, before_it[(column + (1 << index)) % size], before_it[column]))
                for column in range(size)
            ]
        is_column = delayed(m, turned, 1, "is_column")
        for column in range(size):
            output = Signal(signed(OPERAND_WIDTH), name=f"column_{column}", reset_less=True)
            m.d.sync += output.eq(Mux(is_column, rotated[column], skew.skewed[column]))
            m.d.comb += self.skewed[column].eq(output)
            if column < size - 1:
                is_column = delayed(m, is_column, 1, f"is_column_{column}")
        return m
