"""Modules that several instances share: a repeated component is elaborated once, and written once.

Amaranth elaborates every submodule by itself and writes a module for each, however many are alike: an array of
256 × 256 elements becomes 65,536 modules. Here the first of several equal components becomes a module, and each of them
an instance of it. Simulations in Amaranth's own simulator, which knows no instances, elaborate all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from amaranth.hdl import ClockSignal, Elaboratable, Fragment, Instance, ResetSignal, Value
from amaranth.lib import wiring

from openmxu.rtl.verilog.rtlil_text import classes_of, ports_of, to_rtlil

__all__ = ["SharedModules"]

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CLOCK_OR_RESET = re.compile(r"^  wire width 1 input \d+ +\\(clk|rst)$", re.MULTILINE)
_TOP = "  attribute \\top 1\n"


class SharedModules:
    """The shared modules of one design.

    Parameters
    ----------
    prefix
        What the modules' names begin with, so that they are not those of another design in the same project.
    loops
        Whether units should describe grids of equal elements as loops, for compiled simulations.
    sources
        Whether attributes name the file and the line of each statement.
    """

    def __init__(self, prefix: str, *, loops: bool = False, sources: bool = False) -> None:
        self._prefix = prefix
        self._loops = loops
        self._sources = sources
        self._texts: dict[str, str] = {}
        self._verilog: dict[str, str] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._classes: dict[str, type] = {}

    @property
    def rtlil(self) -> str:
        """All modules so far in Yosys's intermediate language."""
        return "".join(self._texts.values())

    @property
    def verilog(self) -> str:
        """All modules so far that are written in Verilog."""
        return "".join(self._verilog.values())

    @property
    def classes(self) -> Mapping[str, type]:
        """The classes of components in all modules so far, by the components' paths."""
        return self._classes

    @property
    def loops(self) -> bool:
        """Whether units should describe grids of equal elements as loops, for compiled simulations."""
        return self._loops

    def add_verilog(self, name: str, write: Callable[[str], str]) -> str:
        """Add the module that ``write`` writes, given its name, and return that name: ``name`` with the prefix."""
        name = f"{self._prefix}_{name}"
        self._verilog[name] = write(name)
        return name

    def instance(self, component: wiring.Component, platform: object) -> Elaboratable:
        """An instance of the module for ``component``, connected to the signals of that component.

        Two components have the same module if their classes and all that their constructors kept are equal.

        Raises
        ------
        TypeError
            An attribute of the component cannot be compared by its hash.
        """
        kind = type(component)
        key = (kind, *_parameters(component))
        component._MustUse__used = True  # or else Amaranth warns of each that is not elaborated
        if key not in self._names:
            stem = f"{self._prefix}_{_WORD_START.sub('_', kind.__name__).lower()}"
            count = sum(other[0].__name__ == kind.__name__ for other in self._names)
            name = self._names[key] = f"{stem}_{count + 1}" if count else stem
            fragment = Fragment.get(component, platform)
            self._classes.update(classes_of(fragment, name))
            text = to_rtlil(fragment, name, platform, ports_of(component), sources=self._sources)
            self._texts[name] = text.replace(_TOP, "", 1)
        name = self._names[key]
        header = self._texts[name].partition("\nend\n")[0]
        ports: dict[str, Value] = {}
        for port in _CLOCK_OR_RESET.findall(header):
            ports[f"i_{port}"] = ClockSignal() if port == "clk" else ResetSignal()
        for path, member, value in component.signature.flatten(component):
            direction = "i" if member.flow == wiring.In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = Value.cast(value)
        return Instance(name, **ports)


def _parameters(component: wiring.Component) -> Iterator[tuple[str, Hashable]]:
    """The attributes that tell a component from others of its class: all but its ports and what Amaranth added."""
    ports = component.signature.members
    for name, value in sorted(vars(component).items()):
        if name not in ports and not name.startswith(("_MustUse__", "_Component__")):
            yield name, value
