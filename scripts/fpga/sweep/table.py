"""The table of docs/fpga.md, and the figure beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from scripts.docs.sections import with_section

__all__ = ["DOCUMENT", "FIGURE", "figure", "table", "with_table", "write_document"]

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "fpga.md"
FIGURE = DOCUMENT.with_suffix(".svg")

_Results = Mapping[str, Mapping[str, Any]]


def table(results: _Results) -> str:
    """A row for each result."""
    head = (
        *("row", "where", "core", "Fmax, MHz", "seeds, MHz", "LUT", "FF", "DSP", "block RAM", "GOPS"),
        *("MOPS/LUT", "critical path"),
    )
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line(_cells(name, result)) for name, result in results.items()]
    tools = {f"{name} {version}" for result in results.values() for name, version in result["tools"].items()}
    return "\n".join(lines) + f"\n\nTools: {', '.join(sorted(tools))}.\n"


def _line(cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _cells(name: str, result: Mapping[str, Any]) -> list[str]:
    config = result["config"]
    profile = "" if config.get("profile", "standard") == "standard" else f"{config['profile']}, "
    core = (
        f"{profile}S = {config['size']}, {_count(config['activation_lanes'], 'lane')}, "
        f"{config['unified_buffer_rows'] * config['size'] / 1024:g} KiB"
    )
    where = f"{result['part']}, {result['target']}"
    memory = str(result["block_ram"]) + (f", {result['spram']} SPRAM" if result["spram"] else "")
    used = [f"{result['lut']:,}", f"{result['ff']:,}", str(result["dsp"]), memory]
    if not result["fits"]:
        over = ", ".join(f"{what} {used} of {there}" for what, (used, there) in result["overflows"].items())
        return [name, where, core, "does not fit", over or "no place found", *used, "", "", ""]
    path = result["critical_path"]
    ends = f"{path['from']} → {path['to']}, {path['levels']} levels" if path else ""
    return [
        *(name, where, core, f"**{result['fmax_mhz']:.1f}**"),
        ", ".join(f"{value:.1f}" for value in result["seeds_mhz"].values()),
        *used,
        f"{result['peak_gops']:.2f}",
        f"{1000 * result['gops_per_lut']:.2f}",
        ends,
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def with_table(document: str, results: _Results) -> str:
    """The document with this table in place of its present one.

    Raises
    ------
    ValueError
        The document has no place for it.
    """
    return with_section(document, "table", table(results))


def figure(results: _Results) -> str:
    """A bar for each row that fits: its frequency, with a line from the slowest to the fastest seed, and its peak."""
    rows = [(name, result) for name, result in results.items() if result["fits"]]
    fastest = max((value for _, result in rows for value in result["seeds_mhz"].values()), default=1.0)
    left, width, height = 150, 420, 22
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 150} {height * len(rows) + 34}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{left}" y="16">Fmax, median of three seeds and their range; peak GOPS</text>',
    ]
    for number, (name, result) in enumerate(rows):
        y = 28 + height * number
        scale = width / fastest
        seeds = [value * scale for value in result["seeds_mhz"].values()]
        median = result["fmax_mhz"] * scale
        lines += [
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{left}" y="{y}" width="{median:.1f}" height="15" fill="#7aa6d6"/>',
            f'<path d="M{left + min(seeds):.1f} {y + 7.5}H{left + max(seeds):.1f}" stroke="#1b3a5c" stroke-width="2"/>',
            f'<text x="{left + max(seeds) + 8:.1f}" y="{y + 12}">{result["fmax_mhz"]:.1f} MHz, '
            f"{result['peak_gops']:.1f} GOPS</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def write_document(results: _Results, document: Path = DOCUMENT, picture: Path = FIGURE) -> None:
    """Rewrite the table and the figure."""
    for path, text in ((document, with_table(document.read_text(), results)), (picture, figure(results))):
        partial = path.with_suffix(".partial")
        partial.write_text(text)
        os.replace(partial, path)
