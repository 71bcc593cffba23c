"""Sites for the multiplier blocks of the array."""

import json

import pytest

from openmxu.rtl.fpga.target import Family
from scripts.fpga.ecp5.floorplan import fix_array
from scripts.fpga.nextpnr import place
from scripts.fpga.parts import PARTS, find_part
from scripts.fpga.yosys import synthesize

DIES = ("LFE5U-25F", "LFE5U-45F", "LFE5U-85F")


def array_of_blocks(rows, columns):
    """A netlist that contains only the blocks of an array."""
    names = [
        f"core.array.row_{row}.element_{column}.multiplier.block" for row in range(rows) for column in range(columns)
    ]
    return {"modules": {"top": {"cells": {name: {"attributes": {}} for name in names}}}}


def sites_of(netlist):
    cells = netlist["modules"]["top"]["cells"]
    return {".".join(name.split(".")[2:4]): cell["attributes"].get("BEL") for name, cell in cells.items()}


def test_rows_and_columns_of_the_array_match_the_sites():
    netlist = array_of_blocks(4, 3)
    assert fix_array(netlist, "top", ["abcdef", "uvwxyz"]) == 12
    assert sites_of(netlist) == {
        "row_0.element_0": "a",
        "row_0.element_1": "c",
        "row_0.element_2": "e",
        "row_1.element_0": "b",
        "row_1.element_1": "d",
        "row_1.element_2": "f",
        "row_2.element_0": "u",
        "row_2.element_1": "w",
        "row_2.element_2": "y",
        "row_3.element_0": "v",
        "row_3.element_1": "x",
        "row_3.element_2": "z",
    }


def test_a_small_array_is_left_to_the_placer():
    netlist = array_of_blocks(2, 3)
    assert fix_array(netlist, "top", ["abcdef", "uvwxyz"]) == 0
    assert set(sites_of(netlist).values()) == {None}


def test_parts_without_places_are_left_to_the_placer():
    assert fix_array(array_of_blocks(4, 4), "top", PARTS["iCE40UP5K-SG48"].array_sites) == 0


@pytest.mark.parametrize("part", DIES)
def test_every_site_takes_a_block_with_a_separate_enable(part, tmp_path):
    part = find_part(part)
    rows, columns = len(part.array_sites), len(part.array_sites[0])
    blocks = [
        f"""
        MULT18X18D #(
          .REG_INPUTB_CLK("CLK0"), .REG_INPUTB_CE("CE1"), .REG_OUTPUT_CLK("CLK0"), .REG_OUTPUT_CE("CE0")
        ) \\array.row_{row}.element_{column}.multiplier.block (
          .CLK0(clk), .CE0(1'b1), .CE1(load[{row * columns + column}]), .P0(products[{row * columns + column}])
        );
        """
        for row in range(rows)
        for column in range(columns)
    ]
    count = rows * columns
    verilog = f"""
        module top(input clk, input bit, output reg [{count - 1}:0] last);
          wire [{count - 1}:0] products;
          reg [{count - 1}:0] load;
          always @(posedge clk) load <= {{load[{count - 2}:0], bit}};
          always @(posedge clk) last <= products;
          {"".join(blocks)}
        endmodule
    """
    netlist = synthesize(verilog, "top", Family.ECP5, tmp_path, part.array_sites)
    cells = json.loads((tmp_path / netlist.json).read_text())["modules"]["top"]["cells"].values()
    sites = {cell["attributes"]["BEL"] for cell in cells if cell["type"] == "MULT18X18D"}
    assert sites == {site for row in part.array_sites for site in row}
    assert place(netlist, part, seed=1, frequency=50.0).usage["MULT18X18D"].used == count
