"""Registers, memories and signs as compiled simulations have them; what they compute, programs on the device judge."""

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.simulation.clocked_memories import with_clocked_memories
from openmxu.rtl.simulation.clocked_registers import with_clocked_registers
from openmxu.rtl.simulation.replications import with_replications
from openmxu.rtl.verilog.convert import to_verilog


class Unit(wiring.Component):
    """A register that keeps its value, one that takes parts, a memory, and the sign of a number."""

    def __init__(self):
        super().__init__({"go": In(1), "value": In(signed(4)), "kept": Out(4), "parts": Out(8), "read": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=16, depth=8, init=[])
        read, write = memory.read_port(), memory.write_port()
        with m.If(self.go):
            m.d.sync += [self.kept.eq(self.value), self.parts[4:].eq(self.value)]
        with m.Else():
            m.d.sync += self.parts[:2].eq(self.value)
        m.d.comb += [
            read.addr.eq(self.kept),
            write.addr.eq(self.parts),
            write.en.eq(self.go),
            write.data.eq(self.value),
            self.read.eq(read.data),
        ]
        return m


def test_registers_are_computed_at_the_clock_edge_in_compiled_simulations_alone():
    text = to_verilog(Unit(), "unit", loops=True)
    assert "always @*" not in text
    assert "      kept  <= value;" in text
    assert "parts [7:4] <= value;" in text
    assert "always @*" in to_verilog(Unit(), "unit")


def test_a_memory_is_read_before_it_is_written_in_one_process():
    text = to_verilog(Unit(), "unit", loops=True)
    process = text[text.index("<= memory[") :]
    assert "memory[parts[2:0]] = " in process[: process.index("  end\n")]


def test_a_sign_is_written_once():
    assert "{ {12{value[3] }}, value  }" in to_verilog(Unit(), "unit", loops=True)


UPDATE = "  always @(posedge clk)\n    kept <= \\$1 ;\n"
COMPUTATION = """\
  always @* begin
    if (\\$auto$start ) begin end
    \\$1  = kept;
    if (go) begin
      \\$1  = a;
    end
  end
"""


@pytest.mark.parametrize(
    "other",
    [
        # Somebody reads the next value, or another process has a part in it.
        "  assign seen = \\$1 ;\n",
        "  assign \\$1 [3] = go;\n",
    ],
)
def test_a_next_value_that_others_use_stays_a_process(other):
    text = f"module m(go);\n  reg [3:0] \\$1 ;\n{COMPUTATION}{UPDATE}{other}endmodule\n"
    assert with_clocked_registers(text) == text
    alone = with_clocked_registers(text.replace(other, ""))
    assert "always @*" not in alone
    assert "if (go) begin\n      kept  <= a;" in alone
    assert "kept  <= kept" not in alone


@pytest.mark.parametrize(
    "change",
    [
        ("read <= memory[b]", "read <= memory[b] + memory[c]"),
        ("(posedge clk) begin\n    read", "(posedge other) begin\n    read"),
    ],
)
def test_memories_with_other_ports_stay_as_they_are(change):
    text = (
        "module m(a);\n  reg [3:0] memory [7:0];\n  initial memory [0] = 0;\n"
        "  always @(posedge clk) begin\n    if (en)\n      memory[a] <= x;\n  end\n"
        "  always @(posedge clk) begin\n    read <= memory[b];\n  end\nendmodule\n"
    )
    assert with_clocked_memories(text) != text
    changed = text.replace(*change)
    assert changed != text
    assert with_clocked_memories(changed) == changed


def test_few_equal_bits_stay_as_they_are():
    assert with_replications("{ a[3], a[3], a[3], b }") == "{ a[3], a[3], a[3], b }"
    assert with_replications("{ \\$1 [3], \\$1 [3], \\$1 [3], \\$1 [3], b }") == "{ {4{\\$1 [3] }}, b  }"
