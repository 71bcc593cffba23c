"""Run walker: computes the place of each row of a burst within its beats."""

from amaranth.hdl import Module, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.common.counting import Countdown
from openmxu.rtl.common.register_slice import RegisterSlice

__all__ = ["RunWalker", "place_layout", "run_layout"]


def run_layout(rows_width: int, lane_width: int, context: ShapeLike | None = None) -> data.StructLayout:
    """A run of consecutive rows in one burst; at least one.

    ``lane`` is the place of the first row within the first beat when a beat holds several rows; else it has no bits.
    ``context``, if there is one, is additional data for the run's rows.
    """
    fields = {"rows": rows_width, "lane": lane_width}
    return data.StructLayout(fields if context is None else {**fields, "context": context})


def place_layout(lane_width: int) -> data.StructLayout:
    """A row's place within its beat, as in :func:`run_layout`, and whether it is the last row of its run."""
    return data.StructLayout({"lane": lane_width, "last": 1})


class RunWalker(wiring.Component):
    """Walks through runs, run after run without a gap.

    Parameters
    ----------
    rows_width, lane_width, context
        Shape of the runs, see :func:`run_layout`.

    Members
    -------
    runs
        Runs; one is taken ahead, so that neither side's handshake depends on the other's.
    places
        One for each row, see :func:`place_layout`; registered.
    context
        Context of the run that the place belongs to, if runs have one.
    busy
        A run that has been taken has rows to come.
    """

    def __init__(self, rows_width: int, lane_width: int, context: ShapeLike | None = None) -> None:
        self._lane_width = lane_width
        self._has_context = context is not None
        super().__init__(
            {
                "runs": In(stream.Signature(run_layout(rows_width, lane_width, context))),
                "places": Out(stream.Signature(place_layout(lane_width))),
                "busy": Out(1),
                **({} if context is None else {"context": Out(context)}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.next = slice_ = RegisterSlice(self.runs.p.shape())
        connect(m, flipped(self.runs), slice_.input)
        runs = slice_.output
        rows = Countdown(Value.cast(runs.p.rows).shape(), "rows")
        step = Signal()
        m.d.comb += [
            step.eq(~self.places.valid | self.places.ready),
            runs.ready.eq(step & (rows.last | ~self.places.valid)),
            self.places.p.last.eq(rows.last),
            self.busy.eq(runs.valid | self.places.valid),
        ]
        with m.If(runs.ready):
            m.d.sync += [self.places.valid.eq(runs.valid), *rows.start(runs.p.rows)]
            if self._has_context:
                m.d.sync += self.context.eq(runs.p.context)
        with m.Elif(step):
            m.d.sync += rows.step()
        if self._lane_width:
            with m.If(runs.ready):
                m.d.sync += self.places.p.lane.eq(runs.p.lane)
            with m.Elif(step):
                m.d.sync += self.places.p.lane.eq(self.places.p.lane + 1)
        return m
