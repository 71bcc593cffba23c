"""Grids of equal elements as loops; what they compute, programs on the Verilated device judge."""

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.simulation.element_grid import Link, Source, grid_of_loops
from openmxu.rtl.verilog.convert import to_verilog

LINKS = (Link("a", "b", Source.LEFT),)


class Element(wiring.Component):
    """Passes a number on, in one of several ways."""

    def __init__(self, way):
        self._way = way
        super().__init__({"a": In(8), "b": Out(8)})

    def elaborate(self, platform):
        m = Module()
        held, moved = Signal(8, reset_less=True), Signal(8, reset_less=True)
        m.d.sync += [held.eq(self.a), moved.eq(self.a // 3 if self._way == "divider" else held[4:])]
        if self._way == "reset":
            m.d.sync += self.b.eq(self.a)
        else:
            m.d.comb += self.b.eq(self.a if self._way == "wire" else moved)
        return m


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("wire", "output b of the element must be a register"),
        ("divider", "a cell "),
        ("reset", "uses its reset"),
        ("upper half", "from its lowest bit on"),
    ],
)
def test_elements_that_are_no_loop_are_refused(way, message):
    with pytest.raises(ValueError, match=message):
        grid_of_loops(Element(way), "grid", 4, LINKS, "b", None)


def test_the_array_is_one_module_with_loops_and_many_without():
    array = SystolicArray(Config.for_size(4))
    assert "module top_element_grid" in to_verilog(array, "top", loops=True)
    text = to_verilog(SystolicArray(Config.for_size(4)), "top")
    assert "element_grid" not in text
    # Four rows, and four elements in each kind of row: sums of one, of two, of three and of four products.
    assert len(re.findall(r"^  top_systolic_row(_\d)? ", text, re.MULTILINE)) == 4
    assert len(re.findall(r"^  top_processing_element(_\d)? ", text, re.MULTILINE)) == 16


def test_rows_with_sums_of_the_same_width_share_a_module():
    text = to_verilog(SystolicArray(Config.for_size(16)), "top")
    assert len(re.findall(r"^  top_systolic_row(_\d+)? ", text, re.MULTILINE)) == 16
    assert len(re.findall(r"^module top_systolic_row", text, re.MULTILINE)) == 8
