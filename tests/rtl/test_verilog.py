"""The Verilog of components: names that do not confuse other tools, shared modules, memories that start as zero."""

import re

import pytest
from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.target import Target
from openmxu.rtl.verilog.convert import to_verilog
from openmxu.rtl.verilog.shared_modules import SharedModules


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


class Doubled(wiring.Component):
    """Twice a number, from one of two equal components, and three times it, from another one."""

    a: In(8)
    twice: Out(8).array(2)
    thrice: Out(8)

    def elaborate(self, platform):
        m = Module()
        target = Target.of(platform)
        for index, factor in enumerate((2, 2, 3)):
            product = Scaled(factor)
            m.submodules[f"product_{index}"] = target.shared(product)
            result = self.thrice if factor == 3 else self.twice[index]
            m.d.comb += [product.a.eq(self.a), result.eq(product.result)]
        return m


class Scaled(wiring.Component):
    """A number times a constant."""

    def __init__(self, factor):
        self._factor = factor
        super().__init__({"a": In(8), "result": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.result.eq(self.a * self._factor)
        return m


def test_equal_components_share_a_module():
    text = to_verilog(Doubled(), "top")
    assert re.findall(r"^module \\?(\S+) ?\(", text, re.MULTILINE) == ["top", "top_scaled", "top_scaled_2"]
    assert re.findall(r"^  \\?(\S+)  ?product_(\d) \($", text, re.MULTILINE) == [
        ("top_scaled", "0"),
        ("top_scaled", "1"),
        ("top_scaled_2", "2"),
    ]


def test_components_that_cannot_be_compared_do_not_share():
    with pytest.raises(TypeError, match="unhashable"):
        SharedModules("top").instance(Scaled([1]), Target())


class Memories(wiring.Component):
    """A memory that starts with zeros, and one that does not."""

    address: In(4)
    data: Out(8).array(2)

    def elaborate(self, platform):
        m = Module()
        for index, (name, init) in enumerate((("zeros", []), ("others", [1, 2]))):
            memory = Memory(shape=8, depth=16, init=init)
            m.submodules[name] = memory
            port = memory.read_port()
            m.d.comb += [port.addr.eq(self.address), port.en.eq(1), self.data[index].eq(port.data)]
        return m


def test_memories_of_zeros_are_cleared_by_a_loop():
    text = to_verilog(Memories(), "top")
    assert "for (zeroed = 0; zeroed < 16; zeroed = zeroed + 1) zeros [zeroed] = 0;" in text
    assert "zeros[1]" not in text
    assert "others[1] = 8'h02;" in text
    assert "others [zeroed]" not in text
