"""The small AXI shell whose files these tests look at."""

from __future__ import annotations

import functools

from openmxu.rtl.axi.top import Top
from openmxu.verilog.design import VerilogDesign, generate
from scripts.faults import CONFIG

COMMAND = "openmxu verilog --shell axi --size 4"


@functools.cache
def axi_shell() -> VerilogDesign:
    """The AXI shell of the configuration that other tests build as well."""
    return generate(Top(CONFIG), CONFIG, "openmxu_axi", command=COMMAND)
