"""Count which lines of the generated Verilog the test suite's programs execute, and which bits they toggle.

    python -m scripts.coverage

The suite's programs for the simulated core run once more on models that Verilator built with ``--coverage-line`` and
``--coverage-toggle``. A line is a statement block or one outcome of an ``if``, ``case`` or ``?:``; a bit is one of a
named signal, and has toggled when it both rose and fell. Memories' contents do not count. Instances of one unit count
together for lines: a line is executed if one of them executed it. All files stay in the output folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from amaranth.hdl import Fragment

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from openmxu.rtl.verilog.convert import rtlil_to_verilog
from openmxu.rtl.verilog.rtlil_text import ports_of, to_rtlil
from openmxu.sim.verilator import CORE, Design
from openmxu.sim.verilator.initial_values import fold_initial_values
from openmxu.sim.verilator.layout import TOP
from scripts.mutation.unit_names import unit_of, units
from tb.core_checks import Check, checks, configurations

_FIELD = re.compile(r"\x01([A-Za-z]+)\x02([^\x01']*)")
_AUTOMATIC = re.compile(r"\\\$\d+ ?")
_MODULE = re.compile(r"^module \\?(\S+?) ?\(")
# Declarations of memories, and of values that Yosys names by number.
_UNCOUNTED = re.compile(r"^ *(reg (\[[\d:]+\] )?\S+ +\[[\d:]+\];$|(reg|wire) (\[[\d:]+\] )?\\\$)")
_SOURCE = re.compile(r'\(\* src = "([^"]*)" \*\)')
_DECLARATION = re.compile(r"^ *(?:input|output|reg|wire) (?:\[[\d:]+\] )?(\S+) ?(?:=.*)?;")
_TARGET = re.compile(r"^\s*(\\?\S+?)(?: ?\[[\d:]+\])? +<?= ")
_REGISTER = re.compile(r"^ *(\\?\S+) <= (\\\S+) ;")


@dataclass(frozen=True)
class Point:
    """A line or branch, or one direction of a bit, of an instance.

    Attributes
    ----------
    kind
        ``line``, ``branch`` or ``toggle``.
    what
        The outcome of the statement, or the bit and direction.
    module
        The module of the netlist.
    line
        Number of the line in the Verilog.
    """

    kind: str
    what: str
    module: str
    line: int


class Netlist:
    """The Verilog of one configuration, with the sources of its lines."""

    def __init__(self, config: Config, path: Path) -> None:
        self.config = config
        self.path = path
        component = Core(config)
        fragment = Fragment.get(component, None)
        # Written as it is compiled, so that Verilator's line numbers match the file.
        text = fold_initial_values(rtlil_to_verilog(to_rtlil(fragment, TOP, None, ports_of(component), sources=True)))
        self.units = units(fragment, TOP)
        self.lines = [_without_toggles(line) if _UNCOUNTED.match(line) else line for line in text.splitlines()]
        path.write_text("\n".join(self.lines) + "\n")

    @property
    def design(self) -> Design:
        """The netlist as a design for the simulator."""
        return dataclasses.replace(CORE, netlist=self.path, sources=(self.path,))

    def unit(self, point: Point) -> str:
        return unit_of(point.module, self.units)

    def line(self, point: Point) -> str:
        return self.lines[point.line - 1].strip()

    @cached_property
    def _targets(self) -> dict[tuple[str, str], str]:
        """The register for each next value that a process computes, by module."""
        found = {}
        for module, line in self._modules():
            if match := _REGISTER.match(line):
                found[module, match[2]] = match[1]
        return found

    @cached_property
    def _sources(self) -> dict[tuple[str, str], str]:
        """The source line of each signal's declaration, by module."""
        found, source = {}, ""
        for module, line in self._modules():
            if match := _DECLARATION.match(line):
                found.setdefault((module, match[1]), source)
            matches = _SOURCE.findall(line)
            source = matches[-1] if matches else ""
        return found

    def _modules(self) -> Iterator[tuple[str, str]]:
        module = ""
        for line in self.lines:
            if match := _MODULE.match(line):
                module = match[1]
            yield module, line

    def describe(self, point: Point) -> tuple[str, str]:
        """The signal that a line computes, with the condition that never held, and its place in the source."""
        for line in self.lines[point.line - 1 :]:
            if (match := _TARGET.match(line)) and not line.lstrip().startswith(("if ", "end", "case")):
                target = self._targets.get((point.module, match[1]), match[1])
                source = self._sources.get((point.module, target), "")
                return target.removeprefix("\\"), re.sub(r"\S*?\b(rtl/)", r"\1", source)
        return "", ""


def _without_toggles(line: str) -> str:
    return f"/*verilator coverage_off*/ {line} /*verilator coverage_on*/"


@dataclass(frozen=True)
class Place:
    """A point without its instance: equal for all instances of a unit, in all configurations."""

    unit: str
    kind: str
    name: str
    outcome: str
    number: int = 0


class _Files:
    """A path that names a new file each time it is used, so that every device of a check writes a separate file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0

    def __fspath__(self) -> str:
        self._count += 1
        return str(self._directory / f"{self._count}.dat")

    def take(self) -> Iterator[Path]:
        """The files written since the last call; they are deleted afterwards."""
        for path in sorted(self._directory.glob("*.dat")):
            yield path
            path.unlink()


def run(netlist: Netlist, every: Sequence[Check], progress: Callable[[Check], None]) -> Counter[Point]:
    """Run all checks on a netlist; returns how often each of its points was reached.

    Raises
    ------
    RuntimeError
        A check failed.
    """
    points: list[Point] = []
    counts = np.zeros(0, np.int64)
    with tempfile.TemporaryDirectory() as directory:
        files = _Files(Path(directory))
        for check in every:
            if message := check.run({"design": netlist.design, "coverage": files}):
                raise RuntimeError(f"{check.name}: {message}")
            for path in files.take():
                lines = [line for line in path.read_text().splitlines() if line.startswith("C ")]
                if not points:
                    points = [_point(line) for line in lines]
                    counts = np.zeros(len(points), np.int64)
                counts += np.array([int(line.rpartition(" ")[2]) for line in lines])
            progress(check)
    found: Counter[Point] = Counter()
    for point, count in zip(points, counts.tolist(), strict=True):
        found[point] += count
    return found


def _point(line: str) -> Point:
    fields = dict(_FIELD.findall(line))
    kind, _, module = fields["page"].removeprefix("v_").partition("/")
    return Point(kind, _decoded(fields["o"]), module, int(fields["l"]))


def _decoded(name: str) -> str:
    """Verilator writes characters that C++ names cannot have as ``__0`` and two hexadecimal digits."""
    return re.sub("__0([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), name)


def places(netlist: Netlist, counts: Counter[Point]) -> Iterator[tuple[Place, Point, int]]:
    """The place of each point without its instance; points of names and statements that Yosys made up are left out."""
    seen: Counter[tuple[str, Place]] = Counter()
    for point in sorted(counts, key=lambda point: point.line):
        unit = netlist.unit(point)
        if point.kind == "toggle":
            name, _, direction = point.what.rpartition(":")
            if not name.startswith("$"):
                yield Place(unit, "toggle", name, direction), point, counts[point]
            continue
        text = netlist.line(point)
        if "verilog_backend.cc" in text:
            continue
        target, _ = netlist.describe(point)
        place = Place(unit, "line", target, f"{point.what}: {_AUTOMATIC.sub('…', text)}")
        seen[point.module, place] += 1
        yield dataclasses.replace(place, number=seen[point.module, place]), point, counts[point]


@dataclass
class Unit:
    """The coverage of one unit."""

    lines: dict[Place, int] = field(default_factory=dict)
    sources: dict[Place, str] = field(default_factory=dict)
    bits: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, place: Place, source: str, count: int) -> None:
        if place.kind == "toggle":
            key = place.name, place.outcome
            self.bits[key] = self.bits.get(key, 0) + count
        else:
            self.lines[place] = self.lines.get(place, 0) + count
            self.sources[place] = source

    def never_executed(self) -> list[Place]:
        return [place for place, count in self.lines.items() if count == 0]

    def never_toggled(self) -> list[str]:
        """Bits that did not both rise and fall."""
        return sorted({name for (name, _), count in self.bits.items() if count == 0})

    def row(self) -> tuple[int, int, int, int]:
        """The numbers of lines, executed lines, bits, and toggled bits."""
        bits = len({name for name, _ in self.bits})
        lines = len(self.lines)
        return lines, lines - len(self.never_executed()), bits, bits - len(self.never_toggled())


def collect(results: Sequence[tuple[Netlist, Counter[Point]]]) -> dict[str, Unit]:
    """All units, over all configurations."""
    found: defaultdict[str, Unit] = defaultdict(Unit)
    for netlist, counts in results:
        for place, point, count in places(netlist, counts):
            source = "" if place.kind == "toggle" else netlist.describe(point)[1]
            found[place.unit].add(place, source, count)
    return dict(sorted(found.items()))


def report(units: dict[str, Unit]) -> str:
    """The table of all units, and lists of lines never executed and bits never toggled."""
    rows = {name: unit.row() for name, unit in units.items()}
    rows["all"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    text = ["| unit | lines | executed | bits | toggled |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, (lines, executed, bits, toggled) in rows.items():
        text.append(f"| {name} | {lines} | {_share(executed, lines)} | {bits} | {_share(toggled, bits)} |")
    text += ["", "## Lines never executed", ""]
    for name, unit in units.items():
        for place in unit.never_executed():
            text.append(f"- {name}: {place.name} ({unit.sources[place]}), {place.outcome}")
    text += ["", "## Bits that never toggled", ""]
    text += [f"- {name}: {', '.join(unit.never_toggled())}" for name, unit in units.items() if unit.never_toggled()]
    return "\n".join(text) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"


def main() -> int:
    options = _parse_options()
    results = []
    for config in configurations(options.sizes):
        directory = options.output / f"S{config.size}"
        directory.mkdir(parents=True, exist_ok=True)
        netlist = Netlist(config, directory / "core.v")
        every = checks(config)
        print(f"S = {config.size}: {len(every)} checks", file=sys.stderr, flush=True)
        results.append((netlist, run(netlist, every, lambda check: None)))
    units = collect(results)
    text = report(units)
    (options.output / "report.md").write_text(text)
    if options.json:
        keys = ("lines", "executed", "bits", "toggled")
        print(json.dumps({name: dict(zip(keys, unit.row(), strict=True)) for name, unit in units.items()}))
    else:
        print(text.partition("\n\n")[0])
        print(f"what was never reached: {options.output / 'report.md'}")
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.coverage", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sizes",
        type=lambda text: tuple(map(int, text.split(","))),
        default=(2, 4),
        help="array sizes, of those of the lockstep tests (default 2,4)",
    )
    parser.add_argument("--output", type=Path, default=Path("build/coverage"), help="folder of all files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
