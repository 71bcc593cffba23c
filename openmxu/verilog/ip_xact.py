"""The AXI shell as a component of IP-XACT (IEEE 1685-2014), with its registers."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

import openmxu
from openmxu.arch.registers import ADDRESS_WIDTH, DEVICE_REGISTERS, Access, DeviceRegister
from openmxu.verilog.buses import CLOCK, INTERRUPT, RESET, Bus, buses_of
from openmxu.verilog.design import VerilogDesign
from openmxu.verilog.rtlil_module import Port

__all__ = ["COMPONENT_NAME", "NAMESPACE", "ip_xact_component"]

COMPONENT_NAME = "component.xml"

NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"

_SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_DIRECTIONS = {"input": "in", "output": "out", "inout": "inout"}
_ACCESSES = {
    Access.READ: "read-only",
    Access.READ_WRITE: "read-write",
    Access.WRITE: "write-only",
    Access.CLEAR: "read-write",
}
_SIGNALS = {CLOCK: ("clock", "CLK"), RESET: ("reset", "RST"), INTERRUPT: ("interrupt", "INTERRUPT")}
_REGISTERS, _REGISTER_FILE, _VIEW = "registers", "device", "rtl"
_FILES = "verilog"


def ip_xact_component(design: VerilogDesign, files: Iterable[tuple[str, str]]) -> str:
    """The text of ``component.xml`` for the design's top module.

    Parameters
    ----------
    design
        The AXI shell.
    files
        Its files in the order of compilation, and IP-XACT's type of each, ``verilogSource`` for example.
    """
    component = ElementTree.Element(
        _tag("component"),
        {f"{{{_SCHEMA_INSTANCE}}}schemaLocation": f"{NAMESPACE} {NAMESPACE}/index.xsd"},
    )
    buses = buses_of(design.ports)
    _texts(component, vendor="openmxu", library="openmxu", name=design.top, version=openmxu.__version__)
    interfaces = _add(component, "busInterfaces")
    for bus in buses:
        _bus(interfaces, bus)
    for name, (kind, logical) in _SIGNALS.items():
        _signal(interfaces, name, kind, logical)
    spaces = _add(component, "addressSpaces")
    for bus in buses:
        if bus.is_manager:
            _texts(_add(spaces, "addressSpace"), name=bus.name, range=1 << bus.address_width, width=bus.data_width)
    _memory_map(_add(_add(component, "memoryMaps"), "memoryMap"))
    _model(_add(component, "model"), design)
    file_set = _add(_add(component, "fileSets"), "fileSet")
    _texts(file_set, name=_FILES)
    for name, kind in files:
        _texts(_add(file_set, "file"), name=name, fileType=kind)
    _texts(component, description=f"Matrix accelerator of {design.config.size} x {design.config.size} elements")
    parameters = _add(component, "parameters")
    for name, value in design.config.as_dict().items():
        kind = "string" if isinstance(value, str) else "int"
        _texts(_add(parameters, "parameter", type=kind, parameterId=name, resolve="immediate"), name=name, value=value)
    ElementTree.register_namespace("ipxact", NAMESPACE)
    ElementTree.register_namespace("xsi", _SCHEMA_INSTANCE)
    ElementTree.indent(component)
    comment = "".join(f"  {line.removeprefix('// ')}\n" for line in design.heading.splitlines())
    # Two hyphens, as options have them, would end the comment.
    comment = comment.replace("--", "- -")
    text = ElementTree.tostring(component, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!--\n{comment}-->\n{text}\n'


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _add(parent: ElementTree.Element, tag: str, /, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, _tag(tag), attributes)


def _texts(parent: ElementTree.Element, /, **texts: object) -> None:
    for name, text in texts.items():
        _add(parent, name).text = str(text)


def _bus(interfaces: ElementTree.Element, bus: Bus) -> None:
    interface = _add(interfaces, "busInterface")
    _texts(interface, name=bus.name)
    kind = "AXI4-Lite" if bus.is_lite else "AXI4" if bus.writes else "AXI4_RO"
    ports = ((signal.upper(), port.name) for signal, port in bus.signals.items())
    _types(interface, {"vendor": "amba.com", "library": "AMBA4", "version": "r0p0_0"}, kind, ports)
    if bus.is_manager:
        _add(_add(interface, "master"), "addressSpaceRef", addressSpaceRef=bus.name)
    else:
        _add(_add(interface, "slave"), "memoryMapRef", memoryMapRef=_REGISTERS)


def _signal(interfaces: ElementTree.Element, name: str, kind: str, logical: str) -> None:
    interface = _add(interfaces, "busInterface")
    _texts(interface, name=name)
    library = {"vendor": "xilinx.com", "library": "signal", "version": "1.0"}
    _types(interface, library, kind, [(logical, name)])
    _add(interface, "master" if kind == "interrupt" else "slave")


def _types(
    interface: ElementTree.Element, library: dict[str, str], kind: str, ports: Iterable[tuple[str, str]]
) -> None:
    _add(interface, "busType", **library, name=kind)
    abstraction = _add(_add(interface, "abstractionTypes"), "abstractionType")
    _add(abstraction, "abstractionRef", **library, name=f"{kind}_rtl")
    maps = _add(abstraction, "portMaps")
    for logical, physical in ports:
        port_map = _add(maps, "portMap")
        _texts(_add(port_map, "logicalPort"), name=logical)
        _texts(_add(port_map, "physicalPort"), name=physical)


def _memory_map(memory_map: ElementTree.Element) -> None:
    _texts(memory_map, name=_REGISTERS)
    block = _add(memory_map, "addressBlock")
    _texts(block, name=_REGISTER_FILE, baseAddress=0, range=1 << ADDRESS_WIDTH, width=32, usage="register")
    for register in DEVICE_REGISTERS:
        _register(_add(block, "register"), register)


def _register(element: ElementTree.Element, register: DeviceRegister) -> None:
    _texts(element, name=register.name, description=register.description, addressOffset=f"'h{register.offset:x}")
    _texts(element, size=register.width, access=_ACCESSES[register.access])
    fields = [(field.name, field.description, field.offset, field.width) for field in register.fields]
    for name, description, offset, width in fields or [("VALUE", "", 0, register.width)]:
        field = _add(element, "field")
        _texts(field, name=name)
        if description:
            _texts(field, description=description)
        _texts(field, bitOffset=offset, bitWidth=width, access=_ACCESSES[register.access])
        if register.access is Access.CLEAR:
            _texts(field, modifiedWriteValue="oneToClear")


def _model(model: ElementTree.Element, design: VerilogDesign) -> None:
    view = _add(_add(model, "views"), "view")
    _texts(view, name=_VIEW, envIdentifier=":*Synthesis:", componentInstantiationRef=_VIEW)
    instantiation = _add(_add(model, "instantiations"), "componentInstantiation")
    _texts(instantiation, name=_VIEW, language="verilog", moduleName=design.top)
    _texts(_add(instantiation, "fileSetRef"), localName=_FILES)
    ports = _add(model, "ports")
    for port in design.ports:
        _port(_add(ports, "port"), port)


def _port(element: ElementTree.Element, port: Port) -> None:
    _texts(element, name=port.name)
    wire = _add(element, "wire")
    _texts(wire, direction=_DIRECTIONS[port.direction])
    if port.width > 1:
        _texts(_add(_add(wire, "vectors"), "vector"), left=port.width - 1, right=0)
