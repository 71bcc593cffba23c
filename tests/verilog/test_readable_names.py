"""Names in the Verilog for users: plain, unique, those of classes; and nothing else is changed."""

import re

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.fpga.target import Target
from openmxu.verilog.design import generate
from openmxu.verilog.rtlil_module import Port


class RunningSum(wiring.Component):
    """The sum of all values so far."""

    value: In(8)
    busy: Out(1)
    total: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.total.eq(self.total + self.value), self.busy.eq(self.value.any())]
        return m


class Negative(RunningSum):
    """A component of another class with another sum."""

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.total.eq(self.total - self.value), self.busy.eq(self.value.any())]
        return m


class Sums(wiring.Component):
    """Two equal components that are elaborated twice, another one, and one that is shared."""

    values: In(data.ArrayLayout(unsigned(8), 2))
    busy: Out(1)
    output: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.first = first = RunningSum()
        m.submodules.second = second = RunningSum()
        m.submodules.negative = negative = Negative()
        shared = RunningSum()
        m.submodules.shared = Target.of(platform).shared(shared)
        table = Signal(8)
        nothing = Signal(data.StructLayout({"none": 0, "all": 8}))
        m.d.comb += [
            first.value.eq(self.values[0]),
            second.value.eq(self.values[1]),
            negative.value.eq(self.values[1]),
            shared.value.eq(first.total),
            table.eq(second.total ^ negative.total),
            nothing["all"].eq(table),
            self.busy.eq(first.busy | second.busy | negative.busy | shared.busy),
            self.output.eq(nothing["all"] + shared.total),
        ]
        return m


def sums(**options) -> str:
    return generate(Sums(), Config(), "top", prefix="mine", command="command", **options).text


def test_modules_are_named_after_their_classes_and_equal_ones_are_one():
    text = sums()
    modules = set(re.findall(r"^module (\S+)\(", text, re.MULTILINE))
    assert modules == {"top", "mine_running_sum", "mine_running_sum_first", "mine_negative"}
    assert re.findall(r"^  (mine_\w+) (\w+) \($", text, re.MULTILINE) == [
        ("mine_running_sum_first", "first"),
        ("mine_negative", "negative"),
        ("mine_running_sum_first", "second"),
        ("mine_running_sum", "shared"),
    ]


def test_comments_say_what_a_module_is():
    text = sums()
    assert re.search(
        r"^// RunningSum of \S+\.py; instances: first, second\n(\(\*.*\n)*module mine_running_sum_first", text, re.M
    )
    assert text.count("(* top =") == 1
    assert re.search(r"^// Sums of \S+\.py\n\(\* top = +1 +\*\)\n(\(\*.*\n)?module top\(", text, re.M)


def test_no_name_needs_an_escape():
    text = sums()
    assert "\\" not in text
    assert {"first__total", "second__busy", "values_0", "nothing_all"} <= set(re.findall(r"\w+", text))
    assert "nothing_none" not in text  # a signal of no bits
    assert "[-1:0]" not in text


def test_words_of_the_language_are_no_names():
    class Words(wiring.Component):
        a: In(1)
        b: Out(1)

        def elaborate(self, platform):
            m = Module()
            table = Signal()
            m.d.sync += [table.eq(self.a), self.b.eq(table)]
            return m

    text = generate(Words(), Config(), "words", command="command").text
    assert "reg table_ = 1'h0;" in text


def test_ports_of_the_top_module_keep_their_names():
    design = generate(Sums(), Config(), "top", prefix="mine", command="command")
    assert set(design.ports) == {
        Port("clk", "input", 1),
        Port("rst", "input", 1),
        Port("values", "input", 16),
        Port("busy", "output", 1),
        Port("output", "output", 8),
    }


def test_sources_name_no_folder_of_this_machine():
    assert "src =" not in sums()
    found = set(re.findall(r'\(\* src = "([^"]+)" \*\)', sums(sources=True)))
    assert any(place.startswith("tests/verilog/test_readable_names.py:") for place in found)
    assert any(place.startswith("amaranth/lib/") for place in found) or len(found) > 10
    assert not any(place.startswith(("/", "..")) for place in found)


def test_header():
    lines = sums().splitlines()
    assert re.fullmatch(r"// openmxu \S+, a matrix accelerator of 8 x 8 elements", lines[0])
    assert "// Written by: command" in lines
    assert "//   unified_buffer_rows = 8192" in lines


def test_text_is_reproducible():
    assert sums() == sums()
