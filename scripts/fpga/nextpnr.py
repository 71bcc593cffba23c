"""Placed and routed designs, with nextpnr."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openmxu.rtl.fpga.target import Family
from scripts.fpga.ecp5.block_places import match_blocks
from scripts.fpga.errors import DoesNotFitError, ToolError, Usage
from scripts.fpga.parts import Part
from scripts.fpga.tools import run_tool
from scripts.fpga.yosys import Netlist

__all__ = ["Placement", "parse_usage", "place", "with_matched_blocks"]

_USAGE = re.compile(r"^Info:\s+(\S+):\s+(\d+)/\s*(\d+)\s+\d+%$", re.MULTILINE)
_NO_PLACE = re.compile(r"no BELs remaining|unable to find (?:a |legal )?placement", re.IGNORECASE)
_CONSTRAINTS = {Family.ECP5: ("--lpf", "{}"), Family.ICE40: ("--pcf", "{}"), Family.GOWIN: ("--vopt", "cst={}")}
_RESULTS = {
    Family.ECP5: ("--textcfg", ".config"),
    Family.ICE40: ("--asc", ".asc"),
    Family.GOWIN: ("--write", ".pnr.json"),
}


@dataclass(frozen=True)
class Placement:
    """The result of nextpnr with one seed.

    Attributes
    ----------
    seed
        Of the placement.
    clocks
        Highest frequency of each clock, in MHz.
    usage
        The use of each resource of the part.
    paths
        Critical paths as nextpnr reports them.
    result
        Name of the placed and routed file, which a bitstream is made of.
    ran
        Whether nextpnr ran, rather than its files being up to date.
    """

    seed: int
    clocks: dict[str, float]
    usage: dict[str, Usage]
    paths: list[dict[str, Any]]
    result: str
    ran: bool

    @property
    def fmax(self) -> float:
        """Highest frequency of the slowest clock, in MHz; 0 if there is no clock."""
        return min(self.clocks.values(), default=0.0)


def parse_usage(log: str) -> dict[str, Usage]:
    """The resources that a design needs, from nextpnr's log before placement."""
    return {name: Usage(int(used), int(available)) for name, used, available in _USAGE.findall(log)}


def place(
    netlist: Netlist,
    part: Part,
    *,
    seed: int,
    frequency: float,
    constraints: str | None = None,
) -> Placement:
    """Place and route, unless the result for the same netlist and tool exists.

    Parameters
    ----------
    netlist
        What.
    part
        Where.
    seed
        Of the placement.
    frequency
        Target frequency for clocks without a constraint, in MHz.
    constraints
        Name of a file of constraints in the netlist's folder; ``None`` places it out of context, its ports bound to no
        pins.

    Raises
    ------
    DoesNotFitError
        The design needs more than the part has.
    MissingToolError, ToolError
        As :func:`~scripts.fpga.tools.run_tool`.
    """
    stem = f"{netlist.top}.{seed}"
    report = f"{stem}.report.json"
    option, suffix = _RESULTS[part.family]
    arguments = ["--report", report]
    if constraints is not None:
        arguments += [option, stem + suffix]
    ran = _run(netlist, part, seed, frequency, constraints, arguments, report)
    return _placement(json.loads((netlist.folder / report).read_text()), seed, stem + suffix, ran)


def with_matched_blocks(
    netlist: Netlist,
    part: Part,
    sites: Mapping[str, Sequence[str]],
    *,
    frequency: float,
    constraints: str | None = None,
) -> Netlist:
    """The netlist with a place for each block of some types, near the cells that a first placement has put around it.

    ``sites`` are all places for each of these types; other parameters and errors are those of :func:`place`.
    """
    first, matched = f"{netlist.top}.first.json", f"{netlist.top}.matched.json"
    _run(netlist, part, 1, frequency, constraints, ["--no-route", "--write", first], first)
    contents = json.loads((netlist.folder / netlist.json).read_text())
    match_blocks(contents, netlist.top, sites, json.loads((netlist.folder / first).read_text()))
    (netlist.folder / matched).write_text(json.dumps(contents))
    return replace(netlist, json=matched)


def _run(
    netlist: Netlist,
    part: Part,
    seed: int,
    frequency: float,
    constraints: str | None,
    options: Sequence[str],
    product: str,
) -> bool:
    """Whether nextpnr had to run."""
    _check_limits(netlist, part)
    arguments = [*part.device, *part.effort_for(netlist.types[part.flip_flops]), "--json", netlist.json]
    arguments += ["--seed", str(seed), "--freq", f"{frequency:g}", "--timing-allow-fail", *options]
    inputs = [netlist.json]
    if constraints is None:
        arguments += ["--out-of-context"]
    else:
        arguments += [flag.format(constraints) for flag in _CONSTRAINTS[part.family]]
        inputs += [constraints]
    try:
        return run_tool(part.nextpnr, arguments, netlist.folder, inputs, product)
    except ToolError as error:
        log = (netlist.folder / f"{product}.log").read_text(errors="replace")
        usage = parse_usage(log)
        reason = _NO_PLACE.search(log)
        if reason or any(item.used > item.available for item in usage.values()):
            raise DoesNotFitError(part.name, usage, "the placer finds no place") from error
        raise


def _check_limits(netlist: Netlist, part: Part) -> None:
    usage = {
        name: Usage(sum(count for kind, count in netlist.types.items() if kind.startswith(begins)), available)
        for name, (begins, available) in part.limits.items()
    }
    if any(item.used > item.available for item in usage.values()):
        raise DoesNotFitError(part.name, usage)


def _placement(report: Mapping[str, Any], seed: int, result: str, ran: bool) -> Placement:
    return Placement(
        seed=seed,
        clocks={name: entry["achieved"] for name, entry in report["fmax"].items()},
        usage={name: Usage(entry["used"], entry["available"]) for name, entry in report["utilization"].items()},
        paths=report["critical_paths"],
        result=result,
        ran=ran,
    )
