"""The Verilated device with a modified netlist: planted faults, and coverage of executed code."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from openmxu.arch.isa import Instruction, format_named
from openmxu.rtl.verilog.convert import to_verilog
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator import Design
from openmxu.sim.verilator.cache import CACHE_VARIABLE
from openmxu.sim.verilator.layout import TOP
from tests.sim.stand_in import CONFIG, DESIGN

HALT = format_named("halt")()

pytestmark = pytest.mark.slow  # only used by mutation and coverage, which are campaigns


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def faulty(tmp_path_factory) -> Design:
    """The stand-in with an input ``fault`` that inverts bits in the tags of events."""
    verilog, count = re.subn(
        r"(events__payload\[38:7\] = .*);", r"\1 ^ fault;", to_verilog(DESIGN.make(CONFIG), TOP), count=1
    )
    assert count == 1
    verilog = re.sub(rf"module {TOP}\(([^)]*)\);", rf"module {TOP}(fault, \1);\n  input [31:0] fault;", verilog)
    netlist = tmp_path_factory.mktemp("netlist") / "faulty.v"
    netlist.write_text(verilog)
    return dataclasses.replace(DESIGN, sources=(netlist,), netlist=netlist, selector="fault")


def tags(device: VerilatedDevice, *instructions: Instruction) -> list[int]:
    """The tags of the events of a program."""
    nothing = np.zeros(16, np.uint8)
    return [event.tag for event in device.execute([*instructions, HALT], nothing, nothing)]


@pytest.mark.parametrize("fault", [0, 1, 6])
def test_a_planted_fault_is_active_when_selected(faulty, fault):
    with VerilatedDevice(CONFIG, design=faulty, fault=fault) as device:
        for _ in range(2):
            assert tags(device, format_named("debug_tag")(tag=8))[0] == 8 ^ fault
            device.reset()


def test_only_a_design_with_a_selector_has_faults():
    with pytest.raises(ValueError, match="fault must be 0, or one of those planted in the design, not 3"):
        VerilatedDevice(CONFIG, design=DESIGN, fault=3)


def test_coverage_counts_what_was_executed(tmp_path):
    counts = []
    for repetitions in (1, 5):
        path = tmp_path / f"{repetitions}.dat"
        with VerilatedDevice(CONFIG, design=DESIGN, coverage=path) as device:
            tags(device, *[format_named("debug_tag")(tag=1)] * repetitions)
        points = [line for line in path.read_text().splitlines() if line.startswith("C ")]
        assert any("\x01page\x02v_line/" in line for line in points)
        toggles = [line for line in points if "\x01page\x02v_toggle/" in line and "\x02events___05Fvalid:" in line]
        counts.append(sum(int(line.rpartition(" ")[2]) for line in toggles))
    assert counts[1] - counts[0] == 2 * 4


def test_a_device_writes_a_waveform_or_coverage(tmp_path):
    with pytest.raises(ValueError, match="a waveform or coverage, not both"):
        VerilatedDevice(CONFIG, design=DESIGN, waveform=tmp_path / "a.vcd", coverage=tmp_path / "a.dat")
