"""A report for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["summary"]


def summary(report: Mapping[str, Any]) -> str:
    """Some lines on a report."""
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
    row("block RAM", f"{report['block_ram']} of {available['block_ram']} ({memories})")
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
