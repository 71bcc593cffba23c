"""Which signals a waveform leaves out."""

from openmxu.sim.verilator.unnamed_signals import hide_unnamed_signals

VERILOG = """\
  wire \\$12 ;
  wire [7:0] \\place$1 ;
  assign \\$12  = _12_ & \\$signal$3 [0];
"""


def test_intermediate_results_get_names_that_are_not_traced():
    assert hide_unnamed_signals(VERILOG) == (
        "  wire _unnamed_12 ;\n  wire [7:0] \\place$1 ;\n  assign _unnamed_12  = _12_ & \\$signal$3 [0];\n"
    )
