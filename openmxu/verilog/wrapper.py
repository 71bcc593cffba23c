"""A wrapper in SystemVerilog around the AXI shell, with the attributes by which Vivado groups ports to buses."""

from __future__ import annotations

from collections.abc import Iterator

from openmxu.verilog.buses import CLOCK, INTERRUPT, RESET, Bus, buses_of
from openmxu.verilog.design import VerilogDesign
from openmxu.verilog.rtlil_module import Port

__all__ = ["wrapper", "wrapper_name"]

_AXI = "xilinx.com:interface:aximm:1.0"


def wrapper_name(top: str) -> str:
    """The name of the wrapper's module around ``top``, and of its file without suffix."""
    return f"{top}_wrapper"


def wrapper(design: VerilogDesign) -> str:
    """The text of the wrapper: the ports of the design's top module, each with an attribute, and an instance of it.

    It uses nothing that Verilog-2005 does not have, for tools that take no SystemVerilog at the top of an IP core.
    """
    attributes = dict(_attributes(buses_of(design.ports)))
    ports = ",\n".join(f"{attributes[port.name]}  {_declaration(port)}" for port in design.ports)
    connections = ",\n".join(f"    .{port.name}({port.name})" for port in design.ports)
    return f"""\
{design.heading}
// The ports of {design.top}, with the attributes of Vivado's IP integrator.
// {RESET} is active low and synchronous to {CLOCK}.
module {wrapper_name(design.top)} (
{ports}
);
  {design.top} accelerator (
{connections}
  );
endmodule
"""


def _declaration(port: Port) -> str:
    bits = f"[{port.width - 1}:0] " if port.width > 1 else ""
    return f"{port.direction} wire {bits}{port.name}"


def _attributes(buses: tuple[Bus, ...]) -> Iterator[tuple[str, str]]:
    """For each port, the lines in front of it."""
    names = ":".join(bus.name for bus in buses)
    clock = f"XIL_INTERFACENAME {CLOCK}, ASSOCIATED_BUSIF {names}, ASSOCIATED_RESET {RESET}"
    yield CLOCK, _lines(f"xilinx.com:signal:clock:1.0 {CLOCK} CLK", clock)
    yield RESET, _lines(f"xilinx.com:signal:reset:1.0 {RESET} RST", f"XIL_INTERFACENAME {RESET}, POLARITY ACTIVE_LOW")
    interrupt = f"XIL_INTERFACENAME {INTERRUPT}, SENSITIVITY LEVEL_HIGH"
    yield INTERRUPT, _lines(f"xilinx.com:signal:interrupt:1.0 {INTERRUPT} INTERRUPT", interrupt)
    for bus in buses:
        for number, (signal, port) in enumerate(bus.signals.items()):
            yield port.name, _lines(f"{_AXI} {bus.name} {signal.upper()}", "" if number else _parameters(bus))


def _lines(info: str, parameters: str) -> str:
    lines = [f'  (* X_INTERFACE_INFO = "{info}" *)\n']
    if parameters:
        lines.append(f'  (* X_INTERFACE_PARAMETER = "{parameters}" *)\n')
    return "".join(lines)


def _parameters(bus: Bus) -> str:
    values = {
        "PROTOCOL": "AXI4LITE" if bus.is_lite else "AXI4",
        "DATA_WIDTH": bus.data_width,
        "ADDR_WIDTH": bus.address_width,
        "READ_WRITE_MODE": "READ_WRITE" if bus.writes else "READ_ONLY",
    }
    if not bus.is_lite:
        # Every burst has beats as wide as the bus and one ID.
        values |= {"ID_WIDTH": bus.signals["arid"].width, "SUPPORTS_NARROW_BURST": 0, "MAX_BURST_LENGTH": 256}
    return ", ".join([f"XIL_INTERFACENAME {bus.name}", *(f"{name} {value}" for name, value in values.items())])
