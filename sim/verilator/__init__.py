"""The core's Verilog, compiled by Verilator into a shared library with a C++ harness around it, and cached."""

from openmxu.sim.verilator.cache import cache_directory, library_path, system_library_path
from openmxu.sim.verilator.design import AXI, CORE, SERIAL, Design
from openmxu.sim.verilator.errors import BuildError, BusError, MachineTooSmallError, MissingToolError

__all__ = [
    "AXI",
    "CORE",
    "SERIAL",
    "BuildError",
    "BusError",
    "Design",
    "MachineTooSmallError",
    "MissingToolError",
    "cache_directory",
    "library_path",
    "system_library_path",
]
