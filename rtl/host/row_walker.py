"""Row walker: turns a range of rows into row addresses, one per cycle."""

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RowWalker", "range_layout"]


def range_layout(address_width: int, rows: ShapeLike) -> data.StructLayout:
    """``rows`` consecutive rows from ``address`` on, at least one; ``is_one`` is set if it is one."""
    return data.StructLayout({"address": address_width, "rows": rows, "is_one": 1})


class RowWalker(wiring.Component):
    """Walks through ranges of rows, range after range without a gap.

    Addresses are registered, because the address inputs of block RAM are far away on the chip.

    Parameters
    ----------
    address_width, rows
        Shape of the ranges, see :func:`range_layout`.

    Members
    -------
    ranges
        A range is taken when its first row comes next.
    rows
        Addresses, and ``last`` with the last row of a range.
    """

    def __init__(self, address_width: int, rows: ShapeLike) -> None:
        super().__init__(
            {
                "ranges": In(stream.Signature(range_layout(address_width, rows))),
                "rows": Out(stream.Signature(data.StructLayout({"address": address_width, "last": 1}))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal.like(self.ranges.p.rows, reset_less=True)
        step = Signal()
        m.d.comb += [
            step.eq(~self.rows.valid | self.rows.ready),
            self.ranges.ready.eq(step & (self.rows.p.last | ~self.rows.valid)),
        ]
        with m.If(step):
            with m.If(self.rows.valid & ~self.rows.p.last):
                m.d.sync += [
                    self.rows.p.address.eq(self.rows.p.address + 1),
                    self.rows.p.last.eq(left == 2),
                    left.eq(left - 1),
                ]
            with m.Else():
                m.d.sync += [
                    self.rows.valid.eq(self.ranges.valid),
                    self.rows.p.address.eq(self.ranges.p.address),
                    self.rows.p.last.eq(self.ranges.p.is_one),
                    left.eq(self.ranges.p.rows),
                ]
        return m
