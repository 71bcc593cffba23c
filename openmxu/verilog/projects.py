"""What tools read beside the Verilog: lists of its files, waivers for a linter, a FuseSoC core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import openmxu
from openmxu.verilog.design import VerilogDesign

__all__ = ["file_list", "fusesoc_core", "waivers"]

_PATTERN = "*openmxu*.v"
_COMMAND = "--top-module openmxu lint.vlt openmxu_core.v"
_EMPTY_SIGNALS = "// A signal of no bits"


def file_list(design: VerilogDesign, name: str, files: Sequence[str], waivers_name: str) -> str:
    """A list of files, ``name``, for simulators and synthesis tools, with paths relative to its own folder."""
    lines = (
        f"// verilator --lint-only -Wall --top-module {design.top} {waivers_name} -F {name}",
        "// Other tools read it with -F or -f; where paths are relative to the current folder, run them in this one.",
        *files,
    )
    return "".join(f"{line}\n" for line in lines)


def waivers(design: VerilogDesign, file: str, name: str) -> str:
    """The waivers of ``rtl/lint.vlt``, in a file ``name``, for one file of Verilog."""
    import openmxu.rtl

    blocks = (Path(openmxu.rtl.__file__).parent / "lint.vlt").read_text().split("\n\n")
    # Signals of no bits are not in this Verilog.
    text = "\n\n".join(block for block in blocks if not block.startswith(_EMPTY_SIGNALS))
    text = text.replace(_COMMAND, f"--top-module {design.top} {name} {file}")
    return text.replace('files with "openmxu" in their name', f"{file} alone").replace(_PATTERN, f"*{file}")


def fusesoc_core(design: VerilogDesign, wrapper_file: str, waivers_name: str) -> str:
    """A CAPI2 core file for the design, its wrapper, the waivers and the C header of its registers."""
    size = f"{design.config.size} x {design.config.size}"
    wrapper = wrapper_file.removesuffix(".sv")
    return f"""\
CAPI=2:

name: "openmxu::{design.top}:{openmxu.__version__}"
description: "openmxu, a matrix accelerator of {size} processing elements with AXI interfaces"

filesets:
  rtl:
    files:
      - {design.top}.v
    file_type: verilogSource-2005
  wrapper:
    files:
      - {wrapper_file}
    file_type: systemVerilogSource
  waivers:
    files:
      - {waivers_name}
    file_type: vlt
  software:
    files:
      - openmxu_registers.h
    file_type: user

targets:
  default: &default
    filesets: [rtl]
    toplevel: {design.top}
  wrapped:
    filesets: [rtl, wrapper]
    toplevel: {wrapper}
  lint:
    <<: *default
    filesets: [waivers, rtl]
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wall]
  software:
    filesets: [software]
"""
