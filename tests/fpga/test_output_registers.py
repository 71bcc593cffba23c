"""Registers after block RAM that are merged into the block, and those that must not be."""

import json

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.yosys import synthesize


class Lookup(wiring.Component):
    """A memory followed by a register."""

    def __init__(self, kind):
        self.kind = kind
        super().__init__(
            {
                "write": In(1),
                "place": In(9),
                "word": In(36),
                "lookup": In(9),
                "enable": In(1),
                "found": Out(36),
                "also": Out(36),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=36, depth=512, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            write.addr.eq(self.place),
            write.data.eq(self.word),
            write.en.eq(self.write),
            read.addr.eq(self.lookup),
        ]
        kept = Signal(36, reset_less=self.kind != "reset", init=1 if self.kind == "init" else 0)
        if self.kind == "enabled":
            with m.If(self.enable):
                m.d.sync += kept.eq(read.data)
        elif self.kind == "inverted":
            m.d.sync += kept.eq(~read.data)
        else:
            m.d.sync += kept.eq(read.data)
        m.d.comb += self.found.eq(kept)
        if self.kind == "read twice":
            m.d.comb += self.also.eq(Cat(read.data[0]))
        return m


@pytest.mark.parametrize("kind", ["plain", "enabled", "reset", "init", "inverted", "read twice"])
def test_a_register_is_merged_if_the_block_supports_it(tmp_path, kind):
    made = synthesize(to_verilog(Lookup(kind), "top", Target(Family.ECP5)), "top", Family.ECP5, tmp_path)
    cells = json.loads((tmp_path / made.json).read_text())["modules"]["top"]["cells"].values()
    (block,) = (cell for cell in cells if cell["type"] == "DP16KD")
    modes = {block["parameters"][f"REGMODE_{port}"] for port in "AB"}
    if kind == "plain":
        assert modes == {"OUTREG"}
        assert (block["connections"]["OCEA"], block["connections"]["OCEB"]) == (["1"], ["1"])
        assert made.types["TRELLIS_FF"] == 0
    else:
        assert modes == {"NOREG"}
        assert made.types["TRELLIS_FF"] == 36
