"""A script with which Vivado packages the AXI shell as an IP core."""

from __future__ import annotations

import openmxu
from openmxu.verilog.buses import CLOCK, buses_of
from openmxu.verilog.design import VerilogDesign

__all__ = ["PACKAGING_NAME", "vivado_packaging"]

PACKAGING_NAME = "package_vivado.tcl"


def vivado_packaging(design: VerilogDesign, wrapper_file: str) -> str:
    """Tcl for ``vivado -mode batch``; the core's folder is ``ip`` beside the script."""
    wrapper = wrapper_file.removesuffix(".sv")
    buses = " ".join(bus.name for bus in buses_of(design.ports))
    version = ".".join(openmxu.__version__.split(".")[:2])
    return f"""\
{design.heading.replace("//", "#")}
# Packages {wrapper} as an IP core:
#
#     vivado -mode batch -source {PACKAGING_NAME}
#
# Then add the folder ip to the IP repositories of a project (Settings > IP > Repository).
set folder [file dirname [file normalize [info script]]]
create_project -force -in_memory {wrapper}
add_files [list [file join $folder {design.top}.v] [file join $folder {wrapper_file}]]
# The wrapper is Verilog as well, which is what an IP core may have at its top.
set_property file_type Verilog [get_files {wrapper_file}]
set_property top {wrapper} [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir [file join $folder ip] -vendor openmxu -library openmxu -taxonomy /UserIP \\
  -import_files -set_current true
set core [ipx::current_core]
set_property name {design.top} $core
set_property version {version} $core
set_property display_name "openmxu {design.config.size} x {design.config.size}" $core
set_property description "Matrix accelerator with AXI interfaces" $core
foreach bus {{{buses}}} {{
  ipx::associate_bus_interfaces -busif $bus -clock {CLOCK} $core
}}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
"""
