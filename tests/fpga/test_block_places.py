"""Sites of blocks are chosen near the cells that they are connected to."""

import json
import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.ecp5.block_places import match_blocks, sites_to_match
from scripts.fpga.nextpnr import place, with_matched_blocks
from scripts.fpga.parts import find_part
from scripts.fpga.yosys import synthesize

PART = find_part("LFE5U-25F")


def block(bit):
    return {"type": "RAM", "attributes": {}, "connections": {"D": [bit], "CLKA": [0]}}


def placed(x, y, bit, kind="FF"):
    return {"type": kind, "attributes": {"NEXTPNR_BEL": f"X{x}/Y{y}/Q"}, "connections": {"Q": [bit], "CLK": [0]}}


def modules(cells, netnames=None):
    return {"modules": {"top": {"cells": cells, "netnames": netnames or {}}}}


@pytest.mark.parametrize("mirrored", [False, True])
def test_all_blocks_together_are_near_their_cells(mirrored):
    """A greedy choice would give the first block the site that the second one needs more."""
    netlist = modules({"first": block(1), "second": block(2)})
    first, second = (10, 14), (10, 8)
    if mirrored:
        first, second = second, first
    there = modules(
        {
            "first": placed(0, 90, 1, "RAM"),
            "second": placed(0, 90, 2, "RAM"),
            "a": placed(*first, 1),
            "b": placed(*second, 2),
            # The clock is connected to all cells and must not matter.
            "c": placed(90, 0, 0),
        }
    )
    sites = {"RAM": ["X10/Y10/R", "X10/Y20/R", "X90/Y90/R"]}
    assert match_blocks(netlist, "top", sites, there) == 2
    cells = netlist["modules"]["top"]["cells"]
    found = [cells[name]["attributes"]["BEL"] for name in ("first", "second")]
    assert found == (["X10/Y10/R", "X10/Y20/R"] if mirrored else ["X10/Y20/R", "X10/Y10/R"])


def test_no_block_is_far_away_for_a_little_less_wire_of_another_one():
    netlist = modules({"first": block(1), "second": block(2)})
    there = modules(
        {
            "first": placed(0, 90, 1, "RAM"),
            "second": placed(0, 90, 2, "RAM"),
            "a": placed(10, 13, 1),
            "b": placed(30, 9, 2),
        }
    )
    match_blocks(netlist, "top", {"RAM": ["X30/Y10/R", "X50/Y15/R"]}, there)
    cells = netlist["modules"]["top"]["cells"]
    assert cells["first"]["attributes"]["BEL"] == "X30/Y10/R"  # 23 and 26; otherwise 42 and 1


def test_blocks_that_need_at_most_a_quarter_of_their_sites_are_left_to_the_placer():
    sites = {"RAM": ["a", "b", "c", "d"], "DSP": ["e", "f"], "PLL": ["g"]}
    assert sites_to_match({"RAM": 1, "DSP": 1, "FF": 9}, sites) == {"DSP": ["e", "f"]}


def test_blocks_that_have_a_place_keep_it():
    fixed = block(1)
    fixed["attributes"]["BEL"] = "X10/Y10/R"
    netlist = modules({"fixed": fixed, "other": block(2)})
    there = modules({"fixed": placed(10, 10, 1, "RAM"), "other": placed(0, 0, 2, "RAM"), "a": placed(10, 10, 2)})
    assert match_blocks(netlist, "top", {"RAM": ["X90/Y90/R", "X10/Y10/R", "X20/Y20/R"]}, there) == 1
    assert netlist["modules"]["top"]["cells"]["other"]["attributes"]["BEL"] == "X20/Y20/R"


def test_constants_do_not_attract_blocks():
    netlist = modules({"it": block(1)})
    netlist["modules"]["top"]["cells"]["it"]["connections"]["A"] = [2]
    itself = placed(0, 0, 1, "RAM")
    itself["connections"]["A"] = [2, 2, 2]
    there = modules(
        {"it": itself, "a": placed(20, 20, 1), "zero": placed(10, 10, 2)}, {"$PACKER_GND_NET": {"bits": [2]}}
    )
    match_blocks(netlist, "top", {"RAM": ["X10/Y10/R", "X20/Y20/R"]}, there)
    assert netlist["modules"]["top"]["cells"]["it"]["attributes"]["BEL"] == "X20/Y20/R"


class Memories(wiring.Component):
    """Several memories of one block RAM each, with a second register for their read data."""

    def __init__(self, count):
        self.count = count
        super().__init__({"address": In(9), "data": In(36), "enable": In(count), "found": Out(36)})

    def elaborate(self, platform):
        m = Module()
        total = 0
        for index in range(self.count):
            m.submodules[f"memory_{index}"] = memory = Memory(shape=36, depth=512, init=[])
            read, write = memory.read_port(), memory.write_port()
            kept = Signal(36, name=f"kept_{index}")
            m.d.comb += [read.addr.eq(self.address), write.addr.eq(self.address), write.data.eq(self.data)]
            m.d.comb += [read.en.eq(1), write.en.eq(self.enable[index])]
            m.d.sync += kept.eq(read.data + index)
            total ^= kept
        m.d.comb += self.found.eq(total)
        return m


@pytest.mark.slow
def test_tools_use_the_places(tmp_path):
    netlist = synthesize(to_verilog(Memories(6), "memories", Target()), "memories", PART.family, tmp_path)
    blocks = netlist.types["DP16KD"]
    assert blocks == 6
    matched = with_matched_blocks(netlist, PART, PART.block_sites, frequency=50.0)
    cells = json.loads((tmp_path / matched.json).read_text())["modules"]["memories"]["cells"].values()
    sites = {cell["attributes"]["BEL"] for cell in cells if cell["type"] == "DP16KD"}
    assert len(sites) == blocks
    assert sites <= set(PART.block_sites["DP16KD"])
    assert place(matched, PART, seed=1, frequency=50.0).usage["DP16KD"].used == blocks
    log = (tmp_path / "memories.1.report.json.log").read_text()
    assert re.search(rf"Placed {blocks} cells based on constraints", log)
