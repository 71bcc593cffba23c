"""Shortened carry chains still compute the same sums."""

import json
import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.yosys import synthesize

WIDTH = 12
OUTPUTS = {
    "sum": lambda a, b, c: a + b,
    "odd": lambda a, b, c: ((a >> 1) + (b >> 1)) & 0x7FF,
    "difference": lambda a, b, c: (a - b) & 0xFFF,
    "carried": lambda a, b, c: a + b + c,
    "less": lambda a, b, c: int(b < a),
    "next": lambda a, b, c: a + 1,
}


class Sums(wiring.Component):
    """Sums of even and odd widths, one of which is used only for its carry."""

    def __init__(self):
        widths = {"sum": WIDTH + 1, "odd": WIDTH - 1, "difference": WIDTH, "carried": WIDTH + 1, "less": 1, "next": 13}
        super().__init__({"a": In(WIDTH), "b": In(WIDTH), "c": In(1), **{name: Out(n) for name, n in widths.items()}})

    def elaborate(self, platform):
        m = Module()
        a, b = self.a, self.b
        m.d.comb += [
            self.sum.eq(a + b),
            self.odd.eq(a[1:] + b[1:]),
            self.difference.eq(a - b),
            self.carried.eq(a + b + self.c),
            self.less.eq(b < a),
            self.next.eq(a + 1),
        ]
        return m


@pytest.fixture(scope="module")
def netlist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums")
    synthesize(to_verilog(Sums(), "top", Target(Family.ECP5)), "top", Family.ECP5, folder)
    return {name: json.loads((folder / f"top.{name}.json").read_text()) for name in ("mapped", "merged")} | {
        "placed": json.loads((folder / "top.json").read_text())
    }


def lookup(cell, half=""):
    """The table of a LUT, or of half a carry cell, and the nets of its inputs."""
    return int(cell["parameters"][f"INIT{half}"], 2), [cell["connections"][f"{port}{half}"][0] for port in "ABCD"]


def evaluate(netlist, a, b, c):
    """The outputs of a netlist of LUTs and carry chains for an ECP5; undefined nets get random values."""
    module = netlist["modules"]["top"]
    values = {"0": 0, "1": 1}
    for name, value in (("a", a), ("b", b), ("c", c)):
        values |= {bit: value >> place & 1 for place, bit in enumerate(module["ports"][name]["bits"])}
    waiting = list(module["cells"].values())

    def at(table, inputs):
        return table >> sum(values[bit] << place for place, bit in enumerate(inputs)) & 1

    while waiting:
        left = []
        for cell in waiting:
            inputs = [bits[0] for port, bits in cell["connections"].items() if cell["port_directions"][port] == "input"]
            if any(bit not in values and bit != "x" for bit in inputs):
                left.append(cell)
                continue
            ports = cell["connections"]
            if cell["type"] == "LUT4":
                values[ports["Z"][0]] = at(*lookup(cell))
            elif cell["type"] == "PFUMX":
                values[ports["Z"][0]] = values[ports["ALUT" if values[ports["C0"][0]] else "BLUT"][0]]
            elif cell["type"] == "L6MUX21":
                values[ports["Z"][0]] = values[ports["D1" if values[ports["SD"][0]] else "D0"][0]]
            else:
                assert cell["type"] == "CCU2C"
                values["x"] = random.getrandbits(1)
                carry = values[ports["CIN"][0]]
                for half in "01":
                    table, inputs = lookup(cell, half)
                    adds = at(table, inputs)
                    if f"S{half}" in ports:
                        values[ports[f"S{half}"][0]] = adds ^ carry
                    carry = carry if adds else at(table & 0xF, inputs[:2])
                if "COUT" in ports:
                    values[ports["COUT"][0]] = carry
        assert len(left) < len(waiting), "a loop, or a net without a driver"
        waiting = left
    return {
        name: sum(values[bit] << place for place, bit in enumerate(module["ports"][name]["bits"])) for name in OUTPUTS
    }


@pytest.mark.build
@pytest.mark.parametrize("stage", ["mapped", "merged", "placed"])
def test_sums_are_unchanged(netlist, stage):
    for _ in range(200):
        a, b, c = (random.getrandbits(width) for width in (WIDTH, WIDTH, 1))
        assert evaluate(netlist[stage], a, b, c) == {name: result(a, b, c) for name, result in OUTPUTS.items()}


@pytest.mark.build
def test_chains_have_no_cells_just_for_carry_in_or_out(netlist):
    def chained(stage):
        cells = netlist[stage]["modules"]["top"]["cells"].values()
        return [cell["connections"] for cell in cells if cell["type"] == "CCU2C"]

    chains = chained("placed")
    carries = {ports["COUT"][0] for ports in chains}
    assert {ports["CIN"][0] for ports in chains} == carries
    ends = sum(ports["COUT"] == ["x"] for ports in chains)
    # nextpnr would add one cell at each end of a chain.
    assert len(chains) < len(chained("mapped")) + 2 * ends
