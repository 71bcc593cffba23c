"""``openmxu verilog``."""

from __future__ import annotations

from openmxu.cli.files import check_writable, write_output
from openmxu.cli.options import OutputOption, PresetOption, SizeOption, make_config
from openmxu.cli.report import working

__all__ = ["TOP", "verilog_command"]

TOP = "openmxu_core"
"""Name of the top module."""


def verilog_command(output: OutputOption, size: SizeOption = None, preset: PresetOption = None) -> None:
    """Write the core as one Verilog file, for any synthesis tool.

    The top module is openmxu_core. Without --size and --preset the array is 8 × 8.
    """
    config = make_config(size, preset)
    check_writable(output)
    with working(f"Generating Verilog of an array of {config.size} × {config.size}"):
        # Imported here because the other commands need no HDL.
        from openmxu.rtl.core import Core
        from openmxu.rtl.verilog import to_verilog

        text = to_verilog(Core(config), TOP)
    write_output(output, text.encode())
