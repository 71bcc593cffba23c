"""Memories that are moved to distributed RAM if a part has too few blocks."""

import json

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.ecp5.small_memories import in_distributed_ram, smallest_memories
from scripts.fpga.yosys import synthesize

DEPTHS = {"small": 32, "middle": 128, "large": 1024}


SIGNATURE = wiring.Signature({"place": In(10), "word": In(18), "write": In(1), "kept": Out(3 * 18)})


class Memories(wiring.Component):
    """Three memories of the same width; the smallest one asks for a block."""

    def __init__(self):
        super().__init__(SIGNATURE)

    def elaborate(self, platform):
        m = Module()
        for number, (name, depth) in enumerate(DEPTHS.items()):
            attributes = {"ram_style": "block"} if name == "small" else {}
            m.submodules[name] = memory = Memory(shape=18, depth=depth, init=[], attrs=attributes)
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                *(write.addr.eq(self.place), write.data.eq(self.word), write.en.eq(self.write)),
                *(read.addr.eq(self.place), self.kept.word_select(number, 18).eq(read.data)),
            ]
        return m


class Top(wiring.Component):
    """The memories within a submodule."""

    def __init__(self):
        super().__init__(SIGNATURE)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memories = memories = Memories()
        wiring.connect(m, wiring.flipped(self), memories)
        return m


def blocks(made):
    cells = json.loads((made.folder / made.json).read_text())["modules"]["top"]["cells"]
    return sorted(name.rsplit(".", 2)[0] for name, cell in cells.items() if cell["type"] == "DP16KD")


def test_the_smallest_memories_make_room(tmp_path):
    verilog = to_verilog(Top(), "top", Target(Family.ECP5))
    made = synthesize(verilog, "top", Family.ECP5, tmp_path / "blocks")
    names = [name for name, kind in made.cells.items() if kind == "DP16KD"]
    assert blocks(made) == ["memories.large", "memories.middle", "memories.small"]
    assert smallest_memories(verilog, "top", names, 1) == ["memories.small"]
    small = smallest_memories(verilog, "top", names, 2)
    assert small == ["memories.small", "memories.middle"]
    made = synthesize(in_distributed_ram(verilog, "top", small), "top", Family.ECP5, tmp_path / "distributed")
    assert blocks(made) == ["memories.large"]
