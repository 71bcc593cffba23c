"""Names in Verilog do not confuse other tools."""

import re

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.verilog import to_verilog


class Words(wiring.Component):
    """The sum of array elements, both words and fields of structs."""

    a: In(32)
    total: Out(12)

    def elaborate(self, platform):
        m = Module()
        words = Signal(data.ArrayLayout(unsigned(8), 4))
        pairs = Signal(data.ArrayLayout(data.StructLayout({"low": 8, "high": 8}), 2))
        m.d.sync += [words.eq(self.a), pairs.eq(~self.a)]
        m.d.comb += self.total.eq(sum(words) + sum(pair.high - pair.low for pair in pairs))
        return m


def test_no_word_of_an_array_has_the_name_of_a_bit():
    text = to_verilog(Words(), "words")
    names = set(re.findall(r"^\s*(?:wire|reg) (?:\[\d+:0\] )?(\S+?)(?: |;)", text, re.MULTILINE))
    assert {"words", r"\words<0>", r"\words<3>", r"\pairs<1>.high"} <= names
    assert not [name for name in names if "[" in name]
