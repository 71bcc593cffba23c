"""The report on the lines that the suite executes."""

from __future__ import annotations

from openmxu.sim.verilator.initial_values import fold_initial_values
from scripts.coverage import Netlist
from tb.core_checks import configurations


def test_lines_are_those_that_verilator_sees(tmp_path):
    netlist = Netlist(configurations((2,))[0], tmp_path / "core.v")
    text = netlist.path.read_text()
    assert fold_initial_values(text) == text
    assert netlist.lines == text.splitlines()
