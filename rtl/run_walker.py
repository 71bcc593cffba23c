"""Run walker: the rows of a burst become places within its beats."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.countdown import Countdown

__all__ = ["RunWalker", "place_layout", "run_layout"]


def run_layout(rows_width: int, lane_width: int) -> data.StructLayout:
    """A run of consecutive rows in one burst; at least one.

    ``lane`` is the place of the first row within the first beat when a beat holds several rows; else it has no bits.
    """
    return data.StructLayout({"rows": rows_width, "lane": lane_width})


def place_layout(lane_width: int) -> data.StructLayout:
    """A row's place within its beat, as in :func:`run_layout`, and whether it is the last row of its run."""
    return data.StructLayout({"lane": lane_width, "last": 1})


class RunWalker(wiring.Component):
    """Walks through runs, run after run without a gap.

    Parameters
    ----------
    rows_width, lane_width
        Shape of the runs, see :func:`run_layout`.

    Members
    -------
    runs
        A run is taken when its first row comes next.
    places
        One for each row, see :func:`place_layout`; out of registers.
    """

    def __init__(self, rows_width: int, lane_width: int) -> None:
        self._rows_width = rows_width
        self._lane_width = lane_width
        super().__init__(
            {
                "runs": In(stream.Signature(run_layout(rows_width, lane_width))),
                "places": Out(stream.Signature(place_layout(lane_width))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = Countdown(Value.cast(self.runs.p.rows).shape(), "rows")
        step = Signal()
        m.d.comb += [
            step.eq(~self.places.valid | self.places.ready),
            self.runs.ready.eq(step & (rows.last | ~self.places.valid)),
            self.places.p.last.eq(rows.last),
        ]
        with m.If(self.runs.ready):
            m.d.sync += [self.places.valid.eq(self.runs.valid), *rows.start(self.runs.p.rows)]
        with m.Elif(step):
            m.d.sync += rows.step()
        if self._lane_width:
            with m.If(self.runs.ready):
                m.d.sync += self.places.p.lane.eq(self.runs.p.lane)
            with m.Elif(step):
                m.d.sync += self.places.p.lane.eq(self.places.p.lane + 1)
        return m
