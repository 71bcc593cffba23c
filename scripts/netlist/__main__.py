"""Run the digits network on the synthesized netlist, cell by cell, and compare with ONNX Runtime.

    python -m scripts.netlist ecp5 --size 4
    python -m scripts.netlist ice40 --preset icebreaker --images 36

Yosys' netlist of the AXI shell for a family of FPGAs is compiled with Yosys' models of the cells, and driven like the
shell itself. This checks that the netlist behaves as the simulated design. Exit status 1 when an output differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import openmxu
from openmxu.arch.config import PRESETS
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.rtl.axi.top import Top
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from openmxu.sim.verilator import AXI, BuildError, MissingToolError
from openmxu.sim.verilator.layout import TOP
from scripts.fpga.errors import FlowError
from scripts.fpga.yosys import synthesize
from scripts.netlist.model import netlist_design

FAMILIES = {family.value: family for family in (Family.ECP5, Family.ICE40)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Synthesize, simulate, compare; returns the exit status."""
    options = _options(arguments)
    try:
        differing = _run(options)
    except (FlowError, BuildError, MissingToolError, ValueError) as error:
        print(f"netlist: error: {error}", file=sys.stderr)
        return 2
    return 1 if differing else 0


def _run(options: argparse.Namespace) -> int:
    family = FAMILIES[options.family]
    if options.preset:
        config = openmxu.Config.preset(options.preset)
    else:
        config = openmxu.Config.for_size(options.size, unified_buffer_rows=2048)
    verilog = to_verilog(Top(config), TOP, Target(family))
    folder = options.output / f"{family.value}-{config.fingerprint}"
    print("synthesis …", file=sys.stderr, flush=True)
    netlist = synthesize(verilog, TOP, family, folder)
    print(f"{family.value}, S = {config.size}, {config.profile} profile: {sum(netlist.types.values()):,} cells")
    images, _ = digits_test_split()
    images = images[: options.images]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    program = openmxu.compile(DIGITS_MODEL, config)
    with openmxu.open_device("axi", config, design=netlist_design(AXI, netlist, family)) as device:
        start = time.perf_counter()
        (logits,) = program.run(device, images).values()
        seconds = time.perf_counter() - start
    differing = int(np.count_nonzero(logits != expected))
    print(f"{len(images)} images in {seconds:.1f} s")
    print(f"outputs that differ from ONNX Runtime: {differing} of {logits.size:,}")
    return differing


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES, help="of FPGAs")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--size", type=int, default=4, help="S of the array (default %(default)s)")
    sizes.add_argument("--preset", choices=PRESETS, help="a named configuration instead")
    parser.add_argument("--images", type=int, default=360, help="how many, at most 360 (default %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("build/netlist"), help="folder (default %(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
