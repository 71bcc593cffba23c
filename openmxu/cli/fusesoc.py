"""The AXI shell as a FuseSoC core: the file that describes its Verilog to other people's builds."""

from __future__ import annotations

from openmxu.arch.config import Config

__all__ = ["core_file"]


def core_file(name: str, version: str, config: Config) -> str:
    """A CAPI2 core file for ``<name>.v`` with top module ``name``, and for the C header of its registers."""
    size = f"{config.size} x {config.size}"
    return f"""\
CAPI=2:

name: "openmxu::{name}:{version}"
description: "openmxu, a matrix accelerator of {size} processing elements with AXI interfaces"

filesets:
  rtl:
    files:
      - {name}.v
    file_type: verilogSource-2005
  software:
    files:
      - openmxu_registers.h
    file_type: user

targets:
  default: &default
    filesets: [rtl]
    toplevel: {name}
  lint:
    <<: *default
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wno-fatal]
  software:
    filesets: [software]
"""
