"""The results of all rows: a JSON file from which the table and the plot are made."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scripts.fpga.implementation import Source
from scripts.fpga.sweep.rows import ROWS, SEEDS, Row
from scripts.fpga.tools import package_version
from scripts.fpga.yosys import YOSYS, commands_of

__all__ = ["RESULTS", "key_of", "moved", "read_results", "result_of", "write_results"]

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "fpga.json"
"""A committed file, rewritten by the sweep."""

_KEPT = (
    *("target", "part", "config", "fits", "fmax_mhz", "clocks_mhz", "seeds_mhz", "lut", "ff", "dsp", "block_ram"),
    *("spram", "available", "overflows", "peak_gops", "gops_per_lut", "tools"),
)
_KEPT_OF_PATH = ("from", "to", "delay_ns", "logic_ns", "routing_ns", "levels")

_COMPARED = ("fmax_mhz", "lut", "ff", "dsp", "block_ram", "spram", "peak_gops", "gops_per_lut")


def key_of(source: Source, frequency: float) -> str:
    """A hash that changes whenever a result may: with hardware, constraints, tools, commands, options and seeds."""
    tools = [f"{name} {package_version(name)}" for name in (YOSYS, source.part.nextpnr)]
    commands = commands_of(source.verilog, source.top, source.part.family)
    options = [*source.part.device, *source.part.effort, *source.part.sparse_effort, f"{frequency:g}"]
    sites = [str(source.part.array_sites), str(source.part.block_sites)]
    parts = [source.verilog, str(source.constraints), *tools, *commands, *options, *sites, str(SEEDS)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def result_of(report: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The part of a report that is committed."""
    path = report["critical_path"]
    kept = {name: report[name] for name in _KEPT}
    return {"key": key, **kept, "critical_path": path and {name: path[name] for name in _KEPT_OF_PATH}}


def read_results(path: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """All results by the name of their row; empty if there is no file yet."""
    return json.loads(path.read_text()) if path.exists() else {}


def write_results(results: Mapping[str, Mapping[str, Any]], path: Path = RESULTS) -> None:
    """Write all results in the order of the table; those of former rows are dropped."""
    ordered = {name: results[name] for name in ROWS if name in results}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(ordered, indent=1) + "\n")
    os.replace(partial, path)


def moved(row: Row, old: Mapping[str, Any] | None, new: Mapping[str, Any], percent: float) -> Iterable[str]:
    """The figures that differ by more than ``percent`` between two results of a row, one line each."""
    if old is None:
        yield f"{row.name}: new"
        return
    if old["fits"] != new["fits"]:
        yield f"{row.name}: {'fits now' if new['fits'] else 'does not fit any more'}"
    for name in _COMPARED:
        before, after = old[name], new[name]
        if before is None or after is None or before == after:
            continue
        change = 100 * (after - before) / before if before else float("inf")
        if abs(change) > percent:
            yield f"{row.name}: {name} {before:g} → {after:g} ({change:+.1f} %)"
