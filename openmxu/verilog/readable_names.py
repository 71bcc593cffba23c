"""Plain names for everything in a design, and one module for all that are equal.

Amaranth numbers a signal that has the name of another one in its module by a counter of the whole design
(``busy$277``), names ports after that counter (``port$6066$0``) and fields with dots, and writes a module for each
instance, named after its path. Here modules are named after the classes that describe them, and such a signal after the
instance that drives it. No statement changes but for its names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from openmxu.verilog.rtlil_module import IDENTIFIER, ModuleText, modules_of

__all__ = ["ReadableDesign", "with_readable_names"]

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERED = re.compile(r"^(\\.+)\$\d+$")
_UNNAMED = re.compile(r"^(\\port\$\d+)?\$\d+$|^\d")
"""A port or a signal that Amaranth numbers, or a constant."""

_CELL = re.compile(r"^  cell (\\\S+) (\S+)$")
_NUMBERED_LEVELS = re.compile(r"\$\d+(?=\.|$)")
_LAST_NUMBER = re.compile(r"\$\d+$")
_TOP = "attribute \\top 1"
_FIXED = ("attribute ", "parameter ")


@dataclass(frozen=True)
class ReadableDesign:
    """A design with readable names.

    Attributes
    ----------
    rtlil
        Its modules.
    instances
        For each module, the paths of its instances below the top one, except for those within shared modules.
    classes
        The class that describes a module, if any does.
    """

    rtlil: str
    instances: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, type]


def with_readable_names(rtlil: str, top: str, prefix: str, classes: Mapping[str, type]) -> ReadableDesign:
    """Rename everything in a design but the ports of its top module.

    Parameters
    ----------
    rtlil
        The design, as Amaranth writes it.
    top
        Its top module, whose name stays.
    prefix
        What the names of all other modules begin with.
    classes
        For the path of a module, without the numbers that Amaranth adds, the class that describes it.
    """
    modules = {module.name: module for module in modules_of(rtlil)}
    renamer = _Renamer(modules, f"\\{top}")
    originals: dict[str, list[str]] = {}
    for name in modules:
        originals.setdefault(renamer.representative(name), []).append(name)
    named = {first: classes.get(_NUMBERED_LEVELS.sub("", first[1:])) for first in originals}
    names = _module_names(named, f"\\{top}", prefix)
    text = "".join(renamer.text(first, names) for first in originals)
    return ReadableDesign(
        text,
        {
            names[first][1:]: tuple(_path(name, top) for name in all_of if name.startswith(f"\\{top}."))
            for first, all_of in originals.items()
        },
        {names[first][1:]: kind for first, kind in named.items() if kind is not None},
    )


class _Renamer:
    """The modules of a design with plain names; equal ones are represented by the first of them."""

    def __init__(self, modules: Mapping[str, ModuleText], top: str) -> None:
        self._modules = modules
        self._top = top
        self._parents = {cell.kind: (module.name, cell) for module in modules.values() for cell in module.cells}
        self._directions = {
            name: {f"\\{port.name}": port.direction for port in module.ports} for name, module in modules.items()
        }
        self._aliases = {name: _aliases(module) for name, module in modules.items()}
        self._uses: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for module in modules.values():
            for cell in module.cells:
                if cell.kind in modules:
                    for port, value in cell.connections.items():
                        self._uses.setdefault((module.name, value.split()[0]), []).append((cell.kind, port))
        self._names: dict[str, dict[str, str]] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self._representatives: dict[str, str] = {}
        self._first: dict[tuple[str, ...], str] = {}

    def representative(self, module: str) -> str:
        """The module that all modules with the same statements become."""
        if module not in self._representatives:
            lines = self._renamed(module)
            key = tuple(line for line in lines if not line.lstrip().startswith("attribute \\src "))
            self._representatives[module] = module if module == self._top else self._first.setdefault(key, module)
        return self._representatives[module]

    def text(self, module: str, names: Mapping[str, str]) -> str:
        """A module with plain names, and the given ones of modules."""
        attributes = self._modules[module].attributes
        if module != self._top:
            attributes = tuple(
                line for line in attributes if line != _TOP
            )  # a shared module is the top of its own text
        lines = (
            _CELL.sub(lambda cell: f"  cell {names.get(cell[1], cell[1])} {cell[2]}", line)
            for line in self._lines[module]
        )
        return "".join(f"{line}\n" for line in (*attributes, f"module {names[module]}", *lines, "end"))

    def _renamed(self, module: str) -> tuple[str, ...]:
        if module not in self._lines:
            self._lines[module] = tuple(self._renamed_lines(self._modules[module]))
        return self._lines[module]

    def _names_of(self, module: str) -> Mapping[str, str]:
        """For each name in a module, one of letters, digits and underscores that no other has."""
        if module not in self._names:
            self._names[module] = self._plain_names(self._modules[module])
        return self._names[module]

    def _plain_names(self, module: ModuleText) -> dict[str, str]:
        fixed = {f"\\{port.name}" for port in module.ports} if module.name == self._top else set()
        drivers = self._drivers(module)
        names: dict[str, str] = {}
        taken: set[str] = set()
        # Names that are plain already are given first, so that they stay.
        for name in sorted(module.names, key=lambda name: (name not in fixed, not name[1:].isidentifier())):
            wish = self._port_name(module.name, name) if _UNNAMED.match(name) else name
            if numbered := _NUMBERED.match(name):
                wish = drivers.get(name, numbered[1] if wish == name else wish)
            names[name] = "\\" + _unique(re.sub(r"\W+", "_", wish).strip("_"), taken)
        return names

    def _drivers(self, module: ModuleText) -> dict[str, str]:
        """For each signal that an instance drives, the name of that instance and its port."""
        found: dict[str, str] = {}
        for cell in module.cells:
            if cell.kind not in self._modules:
                continue
            names = self._names_of(cell.kind)
            for port in self._modules[cell.kind].ports:
                name = f"\\{port.name}"
                if port.direction == "output" and (value := cell.connections[name]).startswith("\\"):
                    found[value.split()[0]] = f"{cell.name}__{names[name][1:]}"
        return found

    def _port_name(self, module: str, port: str) -> str:
        """A name for a port without one: that of the same signal in its module or in the one around it."""
        direction = self._directions[module].get(port)
        if direction is None:
            return port
        suffix = direction.removesuffix("put")
        return f"{_LAST_NUMBER.sub('', alias)}_{suffix}" if (alias := self._alias(module, port)) else suffix

    def _alias(self, module: str, signal: str) -> str:
        """A given name of a signal: its own, or one that it has in this module, below it or around it."""
        if _UNNAMED.match(signal) is None:
            return signal
        alias = self._aliases[module].get(signal, "")
        below = (self._aliases[kind].get(port, port) for kind, port in self._uses.get((module, signal), ()))
        if found := next((name for name in (alias, *below) if name and _UNNAMED.match(name) is None), ""):
            return found
        if alias:
            return self._alias(module, alias)
        if module in self._parents and signal in self._directions[module]:
            parent, cell = self._parents[module]
            if not (outside := cell.connections[signal]).startswith("{"):
                return self._alias(parent, outside.split()[0])
        return ""

    def _renamed_lines(self, module: ModuleText) -> Iterator[str]:
        names = self._names_of(module.name)
        empty = {name for name, width in module.widths.items() if not width}
        ports: Mapping[str, str] | None = None
        for line in module.lines:
            words = line.split()
            if not words:
                continue
            if words[0] in ("wire", "connect") and empty.intersection(words):
                continue  # a wire of no bits, which Verilog does not have
            if line.lstrip().startswith(_FIXED):
                yield line
            elif words[0] == "cell":
                kind = words[1]
                ports = self._names_of(kind) if kind in self._modules else {}
                kind = self.representative(kind) if kind in self._modules else kind
                yield f"  cell {kind} {names.get(words[2], words[2])}"
            elif words[0] == "connect" and ports is not None:
                _, port, value = line.strip().split(" ", 2)
                yield f"    connect {ports.get(port, port)} {_replaced(value, names)}"
            else:
                if line == "  end":
                    ports = None
                yield _replaced(line, names)


def _replaced(line: str, names: Mapping[str, str]) -> str:
    return IDENTIFIER.sub(lambda name: names.get(name[0], name[0]), line)


def _aliases(module: ModuleText) -> dict[str, str]:
    """For each signal that has another name, as a whole or by its fields, that name or what the fields' names share."""
    widths = module.widths
    whole: dict[str, str] = {}
    fields: dict[str, list[list[str]]] = {}
    for line in module.lines:
        if not line.startswith("connect ") or len(words := line.split()) not in (3, 4) or words[2] not in widths:
            continue
        _, name, signal, *bits = words
        width = widths[signal]
        if bits in ([], [f"[{width - 1}:0]"], ["[0]"] if width == 1 else []):
            whole.setdefault(signal, name)
        fields.setdefault(signal, []).append(re.split(r"[.\[\]]+", name)[:-1])
    return {signal: ".".join(_common_start(names)) for signal, names in fields.items()} | whole


def _common_start(names: Sequence[Sequence[str]]) -> list[str]:
    """The levels that all names begin with."""
    same = itertools.takewhile(lambda level: len(set(level)) == 1, zip(*names, strict=False))
    return [level[0] for level in same]


def _module_names(classes: Mapping[str, type | None], top: str, prefix: str) -> dict[str, str]:
    """Names of modules: that of the class, and of the place in the design where several modules have one class."""
    by_stem: dict[str, list[str]] = {}
    for module, kind in classes.items():
        if module != top:
            by_stem.setdefault("" if kind is None else _WORD_START.sub("_", kind.__name__).lower(), []).append(module)
    names = {top: top}
    taken = {top[1:]}
    for stem, modules in by_stem.items():
        for module, place in zip(modules, _places(modules), strict=True):
            # A shared module's path is its name: the class, or the class and a number.
            place = f"{place}_".removeprefix(f"{top[1:]}_").removeprefix(f"{stem}_")
            place = place.removeprefix(f"{stem.rpartition('_')[2]}_").strip("_")
            words = (prefix, stem, place if len(modules) > 1 or not stem else "")
            names[module] = f"\\{_unique('_'.join(filter(None, words)), taken)}"
    return names


def _places(modules: Sequence[str]) -> list[str]:
    """The end of each path, with as many levels as it takes to tell it from the others."""
    paths = [_NUMBERED_LEVELS.sub("", module[1:]).split(".") for module in modules]

    def end(path: list[str], levels: int) -> str:
        return "_".join(path[-levels:])

    deepest = max(map(len, paths))
    places = []
    for path in paths:
        unique = (
            levels
            for levels in range(1, deepest)
            if sum(end(path, levels) == end(other, levels) for other in paths) == 1
        )
        places.append(end(path, next(unique, deepest)))
    return places


def _unique(name: str, taken: set[str]) -> str:
    """The name, or it and the first number that makes one that is not taken; it is from now on."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    found = next(choice for choice in itertools.chain([name], numbered) if choice not in taken)
    taken.add(found)
    return found


def _path(module: str, top: str) -> str:
    """The path of an instance below the top module."""
    return _NUMBERED_LEVELS.sub("", module[1:]).removeprefix(f"{top}.")
