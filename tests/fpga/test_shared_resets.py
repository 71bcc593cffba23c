"""Flip-flops of a part that is nearly full do not use the resets of slices."""

import dataclasses
import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.implementation import Source, make_netlist
from scripts.fpga.parts import find_part

WIDTH = 32


class Registers(wiring.Component):
    """A register that is cleared now and then."""

    def __init__(self):
        super().__init__({"clear": In(1), "word": In(WIDTH), "kept": Out(WIDTH)})

    def elaborate(self, platform):
        m = Module()
        kept = Signal(WIDTH, reset_less=True)
        m.d.sync += kept.eq(self.word ^ kept.rotate_left(1))
        with m.If(self.clear):
            m.d.sync += kept.eq(0)
        m.d.comb += self.kept.eq(kept)
        return m


@pytest.mark.parametrize(("available", "with_reset"), [(2 * WIDTH, WIDTH), (WIDTH, 0)])
def test_resets_of_a_full_part_are_in_logic(tmp_path, available, with_reset):
    part = dataclasses.replace(find_part("LFE5U-25F"), shared_resets=available)
    verilog = to_verilog(Registers(), "top", Target(Family.ECP5))
    netlist = make_netlist(Source("test", Config.preset("tiny"), part, "top", verilog), tmp_path, lambda step: None)
    cells = json.loads((netlist.folder / netlist.json).read_text())["modules"]["top"]["cells"].values()
    flip_flops = [cell for cell in cells if cell["type"] == "TRELLIS_FF"]
    assert len(flip_flops) == WIDTH
    assert sum(isinstance(cell["connections"]["LSR"][0], int) for cell in flip_flops) == with_reset
