"""A component description for Quartus' Platform Designer."""

from __future__ import annotations

from collections.abc import Iterator

import openmxu
from openmxu.verilog.buses import CLOCK, INTERRUPT, RESET, Bus, buses_of
from openmxu.verilog.design import VerilogDesign

__all__ = ["quartus_component"]


def quartus_component(design: VerilogDesign) -> str:
    """Tcl that Platform Designer reads, ``<top>_hw.tcl``, about the AXI shell's top module."""
    buses = buses_of(design.ports)
    subordinate = next(bus.name for bus in buses if not bus.is_manager)
    lines = [
        "package require -exact qsys 16.1",
        "",
        f"set_module_property NAME {design.top}",
        f"set_module_property VERSION {openmxu.__version__}",
        f'set_module_property DISPLAY_NAME "openmxu {design.config.size} x {design.config.size}"',
        'set_module_property DESCRIPTION "Matrix accelerator with AXI interfaces"',
        "set_module_property EDITABLE false",
        "",
        *_files(design),
        "",
        f"add_interface {CLOCK} clock end",
        f"add_interface_port {CLOCK} {CLOCK} clk Input 1",
        "",
        f"add_interface {RESET} reset end",
        f"set_interface_property {RESET} associatedClock {CLOCK}",
        f"set_interface_property {RESET} synchronousEdges BOTH",
        f"add_interface_port {RESET} {RESET} reset_n Input 1",
        "",
        *(line for bus in buses for line in _bus(bus)),
        f"add_interface {INTERRUPT} interrupt end",
        f"set_interface_property {INTERRUPT} associatedAddressablePoint {subordinate}",
        f"set_interface_property {INTERRUPT} associatedClock {CLOCK}",
        f"set_interface_property {INTERRUPT} associatedReset {RESET}",
        f"add_interface_port {INTERRUPT} {INTERRUPT} irq Output 1",
    ]
    return design.heading.replace("//", "#") + "\n" + "".join(f"{line}\n" for line in lines)


def _files(design: VerilogDesign) -> Iterator[str]:
    for kind in ("QUARTUS_SYNTH", "SIM_VERILOG"):
        yield f"add_fileset {kind} {kind}"
        yield f"set_fileset_property {kind} TOP_LEVEL {design.top}"
        yield f"add_fileset_file {design.top}.v VERILOG PATH {design.top}.v"


def _bus(bus: Bus) -> Iterator[str]:
    kind = "axi4lite" if bus.is_lite else "axi4"
    yield f"add_interface {bus.name} {kind} {'start' if bus.is_manager else 'end'}"
    yield f"set_interface_property {bus.name} associatedClock {CLOCK}"
    yield f"set_interface_property {bus.name} associatedReset {RESET}"
    for signal, port in bus.signals.items():
        yield f"add_interface_port {bus.name} {port.name} {signal} {port.direction.capitalize()} {port.width}"
    yield ""
