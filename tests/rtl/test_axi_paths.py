"""No output of the AXI shell depends on an input in the same cycle, as the specification demands (A3.2.1)."""

from __future__ import annotations

from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.axi.top import Top
from tb.formal.axi.ports import CONFIG
from tb.formal.proof import cut
from tests.rtl.netlist import flat_netlist, paths


class Passing(wiring.Component):
    """Has a path from one input to one output, and a register on the way of the other one."""

    def __init__(self) -> None:
        super().__init__({"ready": In(1), "other": In(1), "valid": Out(1), "late": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.valid.eq(self.ready & ~self.late)
        m.d.sync += self.late.eq(self.other)
        return m


def test_paths_are_found(tmp_path: Path) -> None:
    passing = Passing()
    ports = [Value.cast(value) for _, _, value in passing.signature.flatten(passing)]
    module = flat_netlist(rtlil.convert(passing, name="top", ports=ports), tmp_path)
    assert paths(module) == {"valid": {"ready"}}


def test_no_path_leads_through_a_port(tmp_path: Path) -> None:
    """The core is cut out: no output depends on what it drives in the same cycle, so no path leads through it."""
    top = Top(CONFIG)
    fragment = Fragment.get(top, None)
    driven = cut(fragment, "shell.core")
    members = [Value.cast(value) for _, _, value in top.signature.flatten(top)]
    module = flat_netlist(rtlil.convert(fragment, name="top", ports=[*members, *driven], emit_src=False), tmp_path)
    found = paths(module)
    assert "m_axi_host_awvalid" in module["ports"]
    assert found.keys() & top.signature.members.keys() == {"irq"}, "a register of the core, which is cut out"
