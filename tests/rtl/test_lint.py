"""The generated Verilog passes Verilator's -Wall, except for the waivers of rtl/lint.vlt."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.axi.top import Top
from openmxu.rtl.core import Core
from openmxu.rtl.serial.uart_shell import UartShell
from openmxu.rtl.shell.clocked import Clocked
from openmxu.rtl.verilog.convert import to_verilog
from scripts.lint_verilog import TOP, WAIVERS, lint, lint_component
from tests.rtl.components import ADDRESSES, ON_BLOCKS, SMALL, SYSTEMS, component_classes, make

BAD_DESIGN = """
module openmxu(input clk, input [3:0] a, input s, output reg [3:0] q, output [2:0] y, output z, output w,
               output reg [1:0] c);
  wire [3:0] undriven;
  wire loop;
  reg latch;
  assign loop = z | s;
  assign z = loop & a[0];
  always @* if (s) latch = a[1];
  assign w = latch ^ undriven[0];
  assign y = a + 4'd1;
  always @(posedge clk) q = a;
  always @*
    c[1] = 1'h1;
  always @*
    c[0] = s;
endmodule
"""
BAD_DESIGN_RULES = {"UNDRIVEN", "UNOPTFLAT", "LATCH", "WIDTHTRUNC", "BLKSEQ", "IDLEPROCESS"}


@pytest.mark.parametrize(
    ("profile", "size", "lanes", "host_data_bytes", "weight_data_bytes"),
    [
        ("standard", 2, 2, 4, 64),
        ("standard", 4, 1, 8, 16),
        ("full", 2, 1, 8, 4),
        ("full", 8, 8, 16, 8),
        pytest.param("standard", 16, 8, 8, 64, marks=pytest.mark.slow),
        pytest.param("full", 32, 1, 64, 16, marks=pytest.mark.slow),
    ],
)
def test_core(profile, size, lanes, host_data_bytes, weight_data_bytes):
    config = Config(
        profile=profile,
        size=size,
        activation_lanes=lanes,
        host_data_bytes=host_data_bytes,
        weight_data_bytes=weight_data_bytes,
    )
    assert lint_component(Core(config)) == ""


@pytest.mark.parametrize(("addresses", "host_data_bytes", "weight_data_bytes"), [("narrow", 4, 64), ("wide", 64, 8)])
def test_axi(addresses, host_data_bytes, weight_data_bytes):
    widths = {"host_data_bytes": host_data_bytes, "weight_data_bytes": weight_data_bytes}
    assert lint_component(Top(Config(size=2, activation_lanes=1, **ADDRESSES[addresses], **widths))) == ""


def test_serial():
    config = Config(size=2, activation_lanes=1, **ADDRESSES["wide"], host_data_bytes=64, weight_data_bytes=4)
    assert lint_component(Clocked(UartShell(config, clock=12_000_000, baud=1_000_000))) == ""


class Folder(wiring.Component):
    """Several components side by side, since linting them together saves many runs of Yosys and Verilator."""

    def __init__(self, components: dict[str, wiring.Component]) -> None:
        self._components = components
        super().__init__({name: Out(component.signature) for name, component in components.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, component in self._components.items():
            m.submodules[name] = component
            connect(m, flipped(getattr(self, name)), component)
        return m


FOLDERS: dict[str, list[type[wiring.Component]]] = {}
for _component in component_classes():
    if _component not in SYSTEMS + ON_BLOCKS:
        FOLDERS.setdefault(_component.__module__.split(".")[2], []).append(_component)


@pytest.mark.parametrize("components", FOLDERS.values(), ids=FOLDERS)
def test_units(components: list[type[wiring.Component]]):
    config = Config(profile="full", size=8, activation_lanes=2, host_data_bytes=4)
    assert lint_component(Folder({component.__name__: make(component, config) for component in components})) == ""


@pytest.mark.parametrize("host_data_bytes", [4, 64])
def test_small_units(host_data_bytes):
    config = Config(size=8, activation_lanes=2, host_data_bytes=host_data_bytes, profile="lite", weight_queue_depth=1)
    assert lint_component(Folder({name: unit(config) for name, unit in SMALL.items()})) == ""


def test_bad_design_is_found():
    rules = set(re.findall(r"%Warning-(\w+):", lint(BAD_DESIGN)))
    assert rules >= BAD_DESIGN_RULES


def test_broken_verilog_is_found():
    assert "syntax error" in lint("module openmxu(input a; endmodule\n")


def test_waivers_have_reasons():
    waiver = re.compile(r'lint_off -rule [A-Z]+ -file "\*openmxu\*\.v" -match ".+"')
    for block in WAIVERS.read_text().split("\n\n")[2:]:
        lines = block.splitlines()
        assert lines[0].startswith("// "), f"no reason for {block!r}"
        assert all(line.startswith("// ") or waiver.fullmatch(line) for line in lines), block


def test_every_waiver_is_needed():
    messages = lint(to_verilog(Core(Config(size=4, activation_lanes=4, host_data_bytes=16)), TOP), waivers=())
    waived = re.findall(r"^lint_off -rule (\w+)", WAIVERS.read_text(), re.MULTILINE)
    assert set(re.findall(r"%Warning-(\w+):", messages)) == set(waived)


@pytest.mark.parametrize(
    ("options", "status", "output"),
    [
        (["--size", "2", "--lanes", "1"], 0, "the core of size 2 with activation_lanes 1 is clean\n"),
        (["--lanes", "3"], 2, "error: activation_lanes must divide size (8), not 3\n"),
    ],
)
def test_script(options, status, output):
    command = [sys.executable, str(WAIVERS.parents[1] / "scripts" / "lint_verilog.py"), *options]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (status, output)
