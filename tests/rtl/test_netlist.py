"""All registers and inputs of the core have an effect, except for those listed here with the reason."""

from __future__ import annotations

import re

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from tests.rtl.netlist import idle_inputs, idle_registers, netlist

CONFIG = Config(profile="full", size=4, activation_lanes=2)

IDLE_REGISTERS = {
    r"accumulators\.tag_6\[11\]": "the last tag only marks the end of an instruction, not whether it accumulated",
    r"accumulators\.tag_[1-6]\[14\]": "the end of an instruction is told before its last sums are written",
    r"array\.row_\d\.element_3\.(swap|shift|activation)(\$\d+)?\[\d\]": "the last column has no neighbour",
    r"activation_unit\.datapath\.multiplier_\d\.low\.product\[3[2-4]\]": "products wrap to 32 bits",
    r"accumulators\.tag_[56]\[1[23]\]": "the last column has already shifted its sum",
    r"dispatcher\.check\.format\.configuration\[(9|1[0-5]|2[6-9]|3[0-2])\]": (
        "zero points of bytes: the upper bits of a legal one are all equal"
    ),
    r"dispatcher\.check\.format\.word\[[0-7]\]": "the opcode is decoded beside the word",
    r"dispatcher\.check\.ranges(\$\d+)?\.products\.multiplier\.product\[3[23]\]": "no number of rows needs a sign",
    r"[a-z_.]+\.level\[\d\]": ("every queue has a level; synthesis removes it where it is not used"),
    r"activation_unit\.walker\.placed\[13\]": "positions inside the plane are determined after this register",
    r"matrix_sequencer\.row\[15\]": "a tag is only used once its row is granted",
    r"unified_buffer\.((granted|reading|arrived)_matrix|read_matrix__response__valid)\[0\]": (
        "rows for the array travel with their tags"
    ),
}
IDLE_INPUTS = {
    r"host_write__done__payload\[0\]": "a token without a value",
    r"management__payload\[\d+\]": "no writable register is wider than an address and one bit",
}


class Idler(wiring.Component):
    """Has a register bit, a chain of registers, a memory and an input without effect."""

    def __init__(self) -> None:
        super().__init__({"data": In(4), "more": In(2), "result": Out(3)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.used = used = Memory(shape=1, depth=4, init=[])
        m.submodules.unused = unused = Memory(shape=1, depth=4, init=[])
        half = Signal(4)
        first = Signal()
        second = Signal()
        lost = Signal()
        for memory in (used, unused):
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [write.addr.eq(self.data[:2]), write.en.eq(1), write.data.eq(self.more[0])]
            m.d.comb += read.addr.eq(self.data[:2])
            if memory is used:
                m.d.comb += self.result[2].eq(read.data)
            else:
                m.d.sync += lost.eq(read.data)
        m.d.sync += [half.eq(self.data), first.eq(self.more[1]), second.eq(first)]
        m.d.comb += self.result[:2].eq(half[1:3])
        return m


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> dict:
    """The netlist of a core."""
    return netlist(Core(CONFIG), tmp_path_factory.mktemp("core"))


def test_registers_have_an_effect(core):
    _check(idle_registers(core), IDLE_REGISTERS)


def test_inputs_have_an_effect(core):
    _check(idle_inputs(core), IDLE_INPUTS)


def test_idle_logic_is_found(tmp_path):
    module = netlist(Idler(), tmp_path)
    assert idle_registers(module) >= {"half[0]", "half[3]", "first[0]", "second[0]", "lost[0]"}
    assert not idle_registers(module) & {"half[1]", "half[2]"}
    assert idle_inputs(module) == {"data[3]", "more[1]"}


def _check(found: set[str], known: dict[str, str]) -> None:
    # Amaranth appends numbers to names that occur twice in a module.
    names = {re.sub(r"\$\d+", "", name) for name in found}
    unknown = {name for name in names if not any(re.fullmatch(pattern, name) for pattern in known)}
    assert unknown == set()
    gone = {pattern for pattern in known if not any(re.fullmatch(pattern, name) for name in names)}
    assert gone == set(), "these no longer exist: remove them from the list"
