"""The slowest path of a placed design, described by the components that it runs through."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["component_of", "core_of", "critical_path", "text_of"]

_CELL_TYPES = re.compile(r"_(?:TRELLIS_FF|LUT\d|CCU2C|PFUMX|L6MUX21|MULT\w+|SB_\w+|DFF\w*|ALU|MUX2\w*)_|\$")


def core_of(modules: Collection[str]) -> str:
    """The hierarchical path of the core, followed by a dot; empty if the core is the top."""
    inside = "unified_buffer"
    paths = [path for path in modules if path == inside or path.endswith(f".{inside}")]
    return min(paths, key=len, default=inside).removesuffix(inside)


def component_of(cell: str, modules: Collection[str]) -> str:
    """The innermost component that a cell belongs to, as a path of Amaranth's names; empty for the top.

    A cell's name consists of the names of the instances around it, or those of a net, joined by dots.
    """
    parts = re.sub(r"\$\d+(?=\.|$)", "", cell).split(".")
    for length in range(len(parts) - 1, 0, -1):
        if (path := ".".join(parts[:length])) in modules:
            return path
    return ""


def critical_path(paths: Sequence[Mapping[str, Any]], modules: Collection[str]) -> dict[str, Any] | None:
    """The slowest path from register to register.

    Returns
    -------
    dict or None
        ``from`` and ``to``, the components at its ends; ``through``, all components on its way, those of the core by
        their names in it; ``delay_ns``, of which ``logic_ns`` in cells and ``routing_ns`` between them; ``levels``,
        cells between the registers; ``steps``, each with its delay in ns, its kind, and the cell and port that it leads
        to. ``None`` if there is no such path.
    """
    between = [path for path in paths if path["path"] and "<async>" not in path["from"] + path["to"]]
    if not between:
        return None
    slowest = max(between, key=lambda path: sum(step["delay"] for step in path["path"]))["path"]
    cells = [slowest[0]["from"]["cell"], *(step["to"]["cell"] for step in slowest)]
    core = core_of(modules)
    through: list[str] = []
    for cell in cells:
        component = component_of(cell, modules).removeprefix(core) or "top"
        if not through or through[-1] != component:
            through.append(component)
    routing = sum(step["delay"] for step in slowest if step["type"] == "routing")
    delay = sum(step["delay"] for step in slowest)
    steps = [
        {
            "ns": round(step["delay"], 3),
            "kind": step["type"],
            "cell": _short(step["to"]["cell"]).removeprefix(core),
            "port": step["to"]["port"],
        }
        for step in slowest
    ]
    return {
        "from": through[0],
        "to": through[-1],
        "through": through,
        "delay_ns": round(delay, 3),
        "logic_ns": round(delay - routing, 3),
        "routing_ns": round(routing, 3),
        "levels": sum(step["type"] == "logic" for step in slowest),
        "steps": steps,
    }


def text_of(path: Mapping[str, Any]) -> str:
    """A line for each net on the path, with the time since the clock edge at its end."""
    lines, total = [], 0.0
    for step in path["steps"]:
        total += step["ns"]
        name = step["cell"]
        if not lines or not lines[-1].endswith(f" {name}"):
            lines.append("")
        lines[-1] = f"{total:7.2f} ns  {name}"
    return "\n".join(lines)


def _short(cell: str) -> str:
    """The net that Yosys named a cell after: names of cells that drive one another are appended."""
    return _CELL_TYPES.split(cell, maxsplit=1)[0]
