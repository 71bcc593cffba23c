"""The files beside the Verilog of the AXI shell: Verilator, FuseSoC, Vivado, Quartus and IP-XACT find all ports."""

from __future__ import annotations

import os
import re
import subprocess
from xml.etree import ElementTree

import pytest

from openmxu.arch.registers import DEVICE_REGISTERS
from openmxu.sim.verilator.toolchain import find_toolchain
from openmxu.verilog.buses import buses_of
from openmxu.verilog.ip_xact import NAMESPACE
from openmxu.verilog.package import Package
from tests.verilog.axi_shell import COMMAND, axi_shell

PACKAGE = Package("openmxu_axi", "openmxu_axi.v", has_buses=True)
SPACE = {"x": NAMESPACE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all files."""
    path = tmp_path_factory.mktemp("axi")
    for name, text in PACKAGE.contents(axi_shell()).items():
        (path / name).write_text(text)
    return path


def test_verilator_finds_nothing_with_the_files_in_the_folder_alone(folder):
    """Of the wrapper, and so of all that it contains."""
    tools = find_toolchain()
    command = [tools.verilator, "--lint-only", "-Wall", "--quiet", "--top-module", "openmxu_axi_wrapper"]
    environment = os.environ | {"VERILATOR_ROOT": str(tools.verilator_root)}
    command += ["lint.vlt", "-F", "openmxu_axi.f"]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_file_list_names_the_sources(folder):
    lines = (folder / "openmxu_axi.f").read_text().splitlines()
    assert [line for line in lines if not line.startswith("//")] == ["openmxu_axi.v", "openmxu_axi_wrapper.sv"]
    assert lines[0] == "// verilator --lint-only -Wall --top-module openmxu_axi lint.vlt -F openmxu_axi.f"


def test_waivers_hold_for_this_file_alone(folder):
    waivers = re.findall(r'^lint_off -rule \w+ -file "(\S+)" -match', (folder / "lint.vlt").read_text(), re.MULTILINE)
    assert set(waivers) == {"*openmxu_axi.v"}


def test_buses():
    host, weights, control = sorted(buses_of(axi_shell().ports), key=lambda bus: (not bus.is_manager, bus.name))
    assert (host.name, host.is_lite, host.writes, host.data_width, host.address_width) == (
        *("m_axi_host", False, True, 32),
        24,
    )
    assert (weights.name, weights.is_lite, weights.writes, weights.data_width) == ("m_axi_weight", False, False, 64)
    assert (control.name, control.is_lite, control.writes, control.address_width) == ("s_axi", True, True, 12)
    assert (len(host.signals), len(weights.signals), len(control.signals)) == (37, 17, 19)


def test_wrapper_has_an_attribute_for_every_port(folder):
    text = (folder / "openmxu_axi_wrapper.sv").read_text()
    found = re.findall(
        r'X_INTERFACE_INFO = "(\S+) (\S+) (\S+)" \*\)\n(?:  \(\*.*\n)?  (\w+) wire (?:\[\S+ )?(\w+)', text
    )
    ports = {name: direction for _, _, _, direction, name in found}
    assert ports == {port.name: port.direction for port in axi_shell().ports}
    for kind, bus, signal, _, name in found:
        if kind == "xilinx.com:interface:aximm:1.0":
            assert name == f"{bus}_{signal.lower()}"
    assert text.count("    .") == len(ports)
    assert "XIL_INTERFACENAME m_axi_host, PROTOCOL AXI4, DATA_WIDTH 32, ADDR_WIDTH 24" in text
    assert "ASSOCIATED_BUSIF s_axi:m_axi_host:m_axi_weight, ASSOCIATED_RESET aresetn" in text


def test_ip_xact_has_all_ports_and_registers(folder):
    root = ElementTree.parse(folder / "component.xml").getroot()
    ports = {
        port.findtext("x:name", namespaces=SPACE): (
            port.findtext("x:wire/x:direction", namespaces=SPACE),
            int(port.findtext("x:wire/x:vectors/x:vector/x:left", "0", SPACE)) + 1,
        )
        for port in root.findall("x:model/x:ports/x:port", SPACE)
    }
    assert ports == {port.name: (port.direction.removesuffix("put"), port.width) for port in axi_shell().ports}
    mapped = [item.text for item in root.findall(".//x:physicalPort/x:name", SPACE)]
    assert sorted(mapped) == sorted(ports)
    registers = root.findall(".//x:register", SPACE)
    assert [item.findtext("x:name", namespaces=SPACE) for item in registers] == [item.name for item in DEVICE_REGISTERS]
    assert root.findtext("x:model/x:instantiations/x:componentInstantiation/x:moduleName", "", SPACE) == "openmxu_axi"
    for name in root.findall(".//x:file/x:name", SPACE):
        assert (folder / name.text).is_file()


def test_scripts_for_vendors_are_tcl(folder):
    """Vivado and Platform Designer are not here: their commands are recorded instead."""
    tkinter = pytest.importorskip("tkinter")
    names = {port.name for port in axi_shell().ports}
    commands = recorded(tkinter.Tcl(), folder / "openmxu_axi_hw.tcl")
    ports = [words for words in commands if words[0] == "add_interface_port"]
    assert {words[2] for words in ports} == names
    assert len(ports) == len(names)
    interfaces = {words[1]: words[2:] for words in commands if words[0] == "add_interface"}
    assert interfaces["s_axi"] == ("axi4lite", "end")
    assert interfaces["m_axi_weight"] == ("axi4", "start")
    assert {words[1] for words in ports} == set(interfaces)
    commands = recorded(tkinter.Tcl(), folder / "package_vivado.tcl")
    assert [words[2] for words in commands if words[0] == "ipx::associate_bus_interfaces"] == [
        "s_axi",
        "m_axi_host",
        "m_axi_weight",
    ]
    (added,) = (words[1] for words in commands if words[0] == "add_files")
    assert added.split() == [str(folder / "openmxu_axi.v"), str(folder / "openmxu_axi_wrapper.sv")]


def recorded(tcl, script) -> list[tuple[str, ...]]:
    """The commands of a script that Tcl itself does not have."""
    commands: list[tuple[str, ...]] = []
    tcl.createcommand("unknown", lambda *words: commands.append(words) or "")
    tcl.eval("proc package {args} {}")
    tcl.eval(f"source {{{script}}}")
    return commands


def test_every_file_says_where_it_is_from(folder):
    for name in PACKAGE.names:
        if name.endswith((".v", ".sv", ".tcl")):
            assert f" Written by: {COMMAND}\n" in (folder / name).read_text(), name
