"""``openmxu verilog``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_writes_the_core(openmxu, tmp_path):
    result = openmxu("verilog", "--size", 2, "-o", "core.v")
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    text = (tmp_path / "core.v").read_text()
    assert "\nmodule openmxu_core(" in text
    assert text.rstrip().endswith("endmodule")
    assert re.match(r"// openmxu [0-9.]+, a .* of 2 x 2 elements\n(// .*\n)*//   size = 2\n", text)
    assert "\n// Written by: openmxu verilog --shell none --size 2\n" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core.f", "core.v", "core.vlt"]
    assert (tmp_path / "core.f").read_text().endswith("\ncore.v\n")
    assert '-file "*core.v"' in (tmp_path / "core.vlt").read_text()


def test_writes_a_folder(openmxu, tmp_path):
    """With other names of modules, and the sources of signals."""
    result = openmxu("verilog", "--size", 2, "--bus-bytes", 4, "--prefix", "npu", "--sources", "-o", "core")
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "core").iterdir()) == ["lint.vlt", "npu_core.f", "npu_core.v"]
    text = (tmp_path / "core" / "npu_core.v").read_text()
    assert "// Written by: openmxu verilog --shell none --size 2 --bus-bytes 4 --prefix npu --sources\n" in text
    modules = re.findall(r"^module (\w+)\(", text, re.MULTILINE)
    assert {"npu_core", "npu_weight_fifo", "npu_systolic_array"} <= set(modules)
    assert all(name.startswith("npu_") for name in modules)
    assert re.search(r'src = "openmxu/rtl/weights/weight_fifo\.py:\d+"', text)
    assert str(Path.home()) not in text
    assert str(DOCS.parent) not in text


def test_writes_to_a_stream(openmxu):
    result = openmxu("verilog", "--size", 2, "-o", "-")
    assert result.status == 0
    assert result.stdout.startswith("// openmxu ")
    assert result.stdout.rstrip().endswith("endmodule")


def test_profile(openmxu, tmp_path):
    assert openmxu("verilog", "--size", 2, "--profile", "full", "-o", "core.v").status == 0
    assert "transposer" in (tmp_path / "core.v").read_text()
    openmxu("verilog", "--profile", "none", "-o", "core.v").failed(
        2, "unknown profile 'none'; known: standard, lite, full"
    )


def test_output_is_checked_first(openmxu, tmp_path):
    openmxu("verilog", "-o", "missing/core.v").failed(2, "cannot write missing/core.v: there is no directory")
    openmxu("verilog", "--preset", "none", "-o", "core.v").failed(2, "unknown preset 'none'")
    openmxu("verilog").failed(2, "--output is missing")
    openmxu("verilog", "--prefix", "1a", "-o", "core.v").failed(2, "--prefix must be a letter and then", "not '1a'")
    openmxu("verilog", "--shell", "axi", "-o", "missing/axi").failed(
        2, "cannot write missing/axi: there is no directory"
    )
    openmxu("verilog", "--shell", "axi", "-o", "-").failed(2, "--output must be a folder")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    openmxu("verilog", "--shell", "axi", "-o", "file").failed(2, "cannot write file: is not a directory")
    (tmp_path / "axi" / "openmxu_axi.core").mkdir(parents=True)
    openmxu("verilog", "--shell", "axi", "-o", "axi").failed(2, "openmxu_axi.core: is a directory")


def test_writes_the_axi_shell(openmxu, tmp_path):
    """Port names are those that tools look for, and FuseSoC reads the core file."""
    result = openmxu("verilog", "--shell", "axi", "--size", 2)
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    folder = tmp_path / "openmxu_axi"
    assert sorted(path.name for path in folder.iterdir()) == [
        "component.xml",
        "lint.vlt",
        "openmxu_axi.core",
        "openmxu_axi.f",
        "openmxu_axi.v",
        "openmxu_axi_hw.tcl",
        "openmxu_axi_wrapper.sv",
        "openmxu_registers.h",
        "package_vivado.tcl",
    ]
    text = (folder / "openmxu_axi.v").read_text()
    top = text.partition("\nmodule openmxu_axi(")[2].partition("\nendmodule")[0]
    ports = set(re.findall(r"^  (?:in|out)put (?:\[\d+:0\] )?(\w+);", top, re.MULTILINE))
    assert ports == {"aclk", "aresetn", "irq"} | expected_ports()
    assert "ASSOCIATED_BUSIF s_axi:m_axi_host:m_axi_weight, ASSOCIATED_RESET aresetn" in top
    assert (folder / "openmxu_registers.h").read_text() == (DOCS / "openmxu_registers.h").read_text()
    fusesoc = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(folder)]
    command = [*fusesoc, "run", "--target=lint", "--setup", "openmxu_axi"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "build").rglob("*.vc")] == ["openmxu__openmxu_axi_0.1.0.vc"]


def test_writes_the_serial_shell(openmxu, tmp_path):
    result = openmxu("verilog", "--shell", "serial", "--size", 2, "--clock", 25_000_000, "-o", "serial.v")
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    top = (tmp_path / "serial.v").read_text().partition("\nmodule openmxu_serial(")[2].partition("\nendmodule")[0]
    ports = set(re.findall(r"^  (?:in|out)put (\w+);", top, re.MULTILINE))
    assert ports == {"clk", "rst", "uart_rx", "uart_tx", "running", "faulted"}


def test_options_of_the_serial_shell(openmxu):
    openmxu("verilog", "--clock", 1000, "-o", "core.v").failed(2, "--clock and --baud are for --shell serial")
    serial = ("verilog", "--shell", "serial", "-o", "serial.v")
    openmxu(*serial).failed(2, "--shell serial needs --clock")
    openmxu(*serial, "--clock", 12_000_000, "--baud", 7_000_000).failed(
        2, "a clock of 12000000 Hz cannot make 7000000 baud: 1.71 cycles per bit"
    )
    openmxu(*serial, "--clock", 10_000_000, "--baud", 1_800_000).failed(2, "cannot make 1800000 baud")


def expected_ports() -> set[str]:
    """AXI4-Lite and AXI4 without the signals for users, regions and several IDs."""
    address, data = ("valid", "ready", "addr", "prot"), ("valid", "ready", "data")
    burst = (*address, "id", "len", "size", "burst", "lock", "cache", "qos")
    lite = {"aw": address, "w": (*data, "strb"), "b": ("valid", "ready", "resp"), "ar": address, "r": (*data, "resp")}
    read = {"ar": burst, "r": (*data, "id", "resp", "last")}
    write = {"aw": burst, "w": (*data, "strb", "last"), "b": ("valid", "ready", "id", "resp")}
    interfaces = {"s_axi": lite, "m_axi_host": read | write, "m_axi_weight": read}
    return {
        f"{interface}_{channel}{signal}"
        for interface, channels in interfaces.items()
        for channel, signals in channels.items()
        for signal in signals
    }
