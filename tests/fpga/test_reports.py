"""Reports made from the output of the tools, without running the tools."""

import json

import pytest

from openmxu.arch.config import Config
from scripts.fpga.critical_path import component_of, critical_path, text_of
from scripts.fpga.errors import DoesNotFitError, NetlistError, ToolError, Usage
from scripts.fpga.memories import blocks_of_memories, errors_of_memories
from scripts.fpga.nextpnr import Placement, parse_usage, place
from scripts.fpga.parts import find_part
from scripts.fpga.report import make_report, summary, write_report
from scripts.fpga.yosys import Netlist, check_log, modules_of

PART = find_part("LFE5U-85F")

MODULES = frozenset(
    {
        "shell",
        "shell.core",
        "shell.core.accumulators",
        "shell.core.accumulators.column_0",
        "shell.core.activation_unit",
        "shell.core.activation_unit.walker",
        "shell.core.unified_buffer",
    }
)

LOG = """
Info: Device utilisation:
Info: \t          MULT18X18D:     279/    156   178%
Info: \t        TRELLIS_COMB:   19069/  83640    22%

ERROR: Unable to place cell 'array.product', no BELs remaining to implement cell type 'MULT18X18D'
"""


def step(kind, delay, cell, port="D"):
    return {"type": kind, "delay": delay, "from": {"cell": "?", "port": "?"}, "to": {"cell": cell, "port": port}}


def path(*steps, ends=("posedge clk", "posedge clk")):
    steps[0]["from"]["cell"] = "shell.core.activation_unit.walker.row_TRELLIS_FF_Q_1"
    return {"from": ends[0], "to": ends[1], "path": list(steps)}


SLOWEST = path(
    step("clk-to-q", 0.5, "shell.core.activation_unit.walker.row_TRELLIS_FF_Q_1", "Q"),
    step("routing", 1.0, "shell.core.activation_unit.walker.row_CCU2C_S0$CCU2_COMB0", "A"),
    step("logic", 0.25, "shell.core.activation_unit.walker.row_CCU2C_S0$CCU2_COMB0", "F"),
    step("routing", 2.0, "shell.arbiter_TRELLIS_FF_Q", "DI"),
    step("setup", 0.1, "shell.arbiter_TRELLIS_FF_Q", "DI"),
)
PATHS = [path(step("routing", 9.0, "x"), ends=("<async>", "posedge clk")), path(step("routing", 1.0, "x")), SLOWEST]


def placement(seed, mhz):
    return Placement(seed, {"$glbnet$clk": mhz}, parse_usage(LOG), PATHS, "x.config", True)


def netlist(folder):
    cells = {
        "shell.core.unified_buffer.memory.0.0": "DP16KD",
        "shell.core.unified_buffer.memory.0.1": "DP16KD",
        "shell.core.weight_fifo$12.memory.0.0": "DP16KD",
        "shell.core.accumulators.column_0.even_TRELLIS_FF_Q": "TRELLIS_FF",
        "a_LUT4_Z": "LUT4",
    }
    return Netlist(folder, "top", cells, MODULES, "top.json", True)


def test_utilization_is_read_from_the_log():
    assert parse_usage(LOG) == {"MULT18X18D": Usage(279, 156), "TRELLIS_COMB": Usage(19069, 83640)}


def test_a_cell_belongs_to_the_innermost_component():
    assert component_of("shell.core.activation_unit.walker.row_LUT4_Z", MODULES) == "shell.core.activation_unit.walker"
    assert component_of("shell.core$12.accumulators.column_0.even.0.1", MODULES) == "shell.core.accumulators.column_0"
    assert component_of("shell.core.other.row", MODULES) == "shell.core"
    assert component_of("aresetn_LUT4_D", MODULES) == ""


def test_modules_are_found_in_verilog():
    text = (
        "module top(a);\nendmodule\nmodule \\top.shell$5 (b);\nendmodule\nmodule \\top.shell$5.core (b);\nendmodule\n"
    )
    assert modules_of(text, "top") == {"shell", "shell.core"}


def test_the_critical_path_is_reported_by_components():
    found = critical_path(PATHS, MODULES)
    assert (found["from"], found["to"]) == ("activation_unit.walker", "shell")
    assert found["through"] == ["activation_unit.walker", "shell"]
    assert (found["delay_ns"], found["logic_ns"], found["routing_ns"], found["levels"]) == (3.85, 0.85, 3.0, 1)
    assert text_of(found).splitlines() == ["   1.75 ns  activation_unit.walker.row", "   3.85 ns  shell.arbiter"]


def test_a_design_without_registers_has_no_critical_path():
    assert critical_path(PATHS[:1], MODULES) is None


def test_memories_without_block_ram_are_errors(tmp_path):
    blocks = blocks_of_memories(netlist(tmp_path), PART, "full")
    assert (blocks["unified_buffer"], blocks["accumulators"], blocks["weight_fifo"]) == (2, 0, 1)
    assert blocks_of_memories(netlist(tmp_path), PART, "lite")["weights"] == 0
    missing = "accumulators, activation_unit.datapath.parameters, activation_unit.datapath.table"
    assert errors_of_memories(blocks) == [f"no block RAM inferred for {missing}"]
    assert errors_of_memories({"unified_buffer": 1}) == []


def test_the_report_has_the_median_of_the_seeds(tmp_path):
    config = Config.for_size(8)
    usage = {"TRELLIS_COMB": Usage(1000, 83640), "MULT18X18D": Usage(64, 156), "DP16KD": Usage(2, 208)}
    placements = [placement(1, 90.0), placement(2, 120.0), placement(3, 100.0)]
    report = make_report("out of context", config, PART, netlist(tmp_path), placements, usage)
    assert report["fmax_mhz"] == 100.0
    assert report["seeds_mhz"] == {"1": 90.0, "2": 120.0, "3": 100.0}
    assert report["clocks_mhz"] == {"clk": 100.0}
    assert (report["lut"], report["ff"], report["dsp"], report["block_ram"]) == (1000, 1, 64, 2)
    assert report["peak_gops"] == 12.8
    assert report["gops_per_lut"] == 0.0128
    assert report["fits"]
    text = summary(report)
    assert "100.0 MHz, the median: 90.0 with seed 1" in text
    assert "activation_unit.walker → shell" in text


def test_a_design_that_does_not_fit_has_a_report(tmp_path):
    report = make_report("out of context", Config.for_size(8), PART, netlist(tmp_path), [], parse_usage(LOG))
    assert not report["fits"]
    assert report["fmax_mhz"] is None
    assert report["overflows"] == {"MULT18X18D": [279, 156]}
    assert "does not fit" in summary(report)
    assert "MULT18X18D 279 of 156" in summary(report)


def test_a_report_is_written_at_once(tmp_path):
    write_report({"fits": True}, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == {"fits": True}
    with pytest.raises(TypeError):
        write_report({"fits": object()}, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == {"fits": True}
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_too_large_designs_are_distinguished_from_failures(tmp_path, monkeypatch):
    log = tmp_path / "top.1.report.json.log"

    def fail(tool, *_):
        raise ToolError(tool, "it stopped", log)

    monkeypatch.setattr("scripts.fpga.nextpnr.run_tool", fail)
    log.write_text(LOG)
    with pytest.raises(DoesNotFitError, match="does not fit LFE5U-85F: MULT18X18D 279 of 156"):
        place(netlist(tmp_path), PART, seed=1, frequency=100.0)
    log.write_text("ERROR: no such file\n")
    with pytest.raises(ToolError, match="it stopped"):
        place(netlist(tmp_path), PART, seed=1, frequency=100.0)


def test_a_part_whose_tool_does_not_report_overflows(tmp_path):
    cells = {f"lut_{number}": f"LUT{number % 4 + 1}" for number in range(8641)}
    with pytest.raises(DoesNotFitError, match="does not fit GW1NR-LV9QN88PC6/I5: LUT4 8641 of 8640"):
        place(
            Netlist(tmp_path, "top", cells, MODULES, "top.json", True),
            find_part("GW1NR-LV9QN88PC6/I5"),
            seed=1,
            frequency=20.0,
        )


def test_a_netlist_with_resolved_conflicts_is_an_error(tmp_path):
    log = tmp_path / "yosys.log"
    log.write_text("Warning: Driver-driver conflict for \\p between cell a.O and constant 1'0 in top: Resolved ...\n")
    with pytest.raises(NetlistError, match="Driver-driver conflict"):
        check_log(log)
    log.write_text("Warning: something else\n")
    check_log(log)


def test_an_unknown_part_is_an_error():
    with pytest.raises(Exception, match="unknown part 'X'; known: LFE5U-25F"):
        find_part("X")
