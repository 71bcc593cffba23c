"""All files of a design: the Verilog, and what tools and programmers need beside it."""

from __future__ import annotations

from dataclasses import dataclass

from openmxu.driver.c_header import HEADER_NAME, c_header
from openmxu.verilog.design import VerilogDesign
from openmxu.verilog.ip_xact import COMPONENT_NAME, ip_xact_component
from openmxu.verilog.projects import file_list, fusesoc_core, waivers
from openmxu.verilog.quartus import quartus_component
from openmxu.verilog.vivado import PACKAGING_NAME, vivado_packaging
from openmxu.verilog.wrapper import wrapper, wrapper_name

__all__ = ["Package"]

_VERILOG, _SYSTEM_VERILOG = "verilogSource", "systemVerilogSource"


@dataclass(frozen=True)
class Package:
    """The names of a design's files, which are known before it is generated, and their contents.

    Attributes
    ----------
    top
        The design's top module.
    verilog
        Name of the file of Verilog.
    waivers
        Name of the file of waivers for Verilator's warnings.
    has_buses
        Whether the design is the AXI shell, with the files that describe its buses and registers.
    """

    top: str
    verilog: str
    waivers: str = "lint.vlt"
    has_buses: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files."""
        names: tuple[str, ...] = (self.verilog, self.file_list, self.waivers)
        if self.has_buses:
            names += (self._wrapper, f"{self.top}.core", COMPONENT_NAME, PACKAGING_NAME, self._quartus, HEADER_NAME)
        return names

    @property
    def file_list(self) -> str:
        """Name of the list of files."""
        return f"{self.verilog.rpartition('.')[0]}.f"

    def contents(self, design: VerilogDesign) -> dict[str, str]:
        """The text of each file, by its name."""
        sources = [self.verilog, *([self._wrapper] if self.has_buses else [])]
        texts = [
            design.text,
            file_list(design, self.file_list, sources, self.waivers),
            waivers(design, self.verilog, self.waivers),
        ]
        if self.has_buses:
            texts += [
                wrapper(design),
                fusesoc_core(design, self._wrapper, self.waivers),
                ip_xact_component(design, [(self.verilog, _VERILOG), (self._wrapper, _SYSTEM_VERILOG)]),
                vivado_packaging(design, self._wrapper),
                quartus_component(design),
                c_header(),
            ]
        return dict(zip(self.names, texts, strict=True))

    @property
    def _wrapper(self) -> str:
        return f"{wrapper_name(self.top)}.sv"

    @property
    def _quartus(self) -> str:
        return f"{self.top}_hw.tcl"
