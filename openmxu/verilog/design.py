"""A component as the Verilog that somebody else uses: readable names, and comments that say where it comes from."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import openmxu
import openmxu.rtl
from openmxu.arch import Config
from openmxu.verilog.rtlil_module import Port, modules_of

if TYPE_CHECKING:
    from amaranth.lib import wiring

    from openmxu.verilog.readable_names import ReadableDesign

__all__ = ["DEFAULT_PREFIX", "VerilogDesign", "generate", "header"]

DEFAULT_PREFIX = "openmxu"
"""What the names of all modules begin with, unless somebody has two cores in one design."""

_SOURCE = re.compile(r'(attribute \\src )"([^"]*)"')
_MODULE = re.compile(r"^((?:\(\* .* \*\)\n)*)module (\w+) ?\(", re.MULTILINE)
_WIDTH = 120


@dataclass(frozen=True)
class VerilogDesign:
    """Verilog, and what other files say about it.

    Attributes
    ----------
    top
        Name of the top module.
    config
        The core's configuration.
    text
        The Verilog.
    ports
        Ports of the top module.
    heading
        The comments at the beginning: version, command and configuration. Other files may repeat them.
    """

    top: str
    config: Config
    text: str
    ports: tuple[Port, ...]
    heading: str


def generate(
    component: wiring.Component,
    config: Config,
    top: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    command: str,
    sources: bool = False,
) -> VerilogDesign:
    """Generate the Verilog of a component.

    Parameters
    ----------
    component, config
        The component, and the configuration that the header states.
    top
        Name of the top module.
    prefix
        What the names of all other modules begin with, followed by an underscore.
    command
        The command that writes it, for the header.
    sources
        Whether attributes ``src`` name the file and the line of each signal and statement.
    """
    from amaranth.hdl import Fragment

    from openmxu.arch.collection import paused_collection
    from openmxu.rtl.fpga.target import Target
    from openmxu.rtl.verilog.convert import named_verilog
    from openmxu.rtl.verilog.rtlil_text import classes_of, ports_of, to_rtlil
    from openmxu.rtl.verilog.shared_modules import SharedModules
    from openmxu.verilog.readable_names import with_readable_names

    shared = SharedModules(top, sources=sources)
    target = dataclasses.replace(Target(), modules=shared)
    with paused_collection():
        fragment = Fragment.get(component, target)
        classes = dict(classes_of(fragment, top))
        rtlil = to_rtlil(fragment, top, target, ports_of(component), sources=sources) + shared.rtlil
        design = with_readable_names(rtlil, top, prefix, {**classes, **shared.classes})
        ports = next(tuple(module.ports) for module in modules_of(design.rtlil) if module.name == f"\\{top}")
        verilog = named_verilog(_SOURCE.sub(_relative_source, design.rtlil))
    heading = header(config, command)
    return VerilogDesign(top, config, heading + _with_comments(verilog, design), ports, heading)


def header(config: Config, command: str, comment: str = "//") -> str:
    """Comments that say what a file is: version, command, and every parameter of the configuration."""
    lines = (
        f"openmxu {openmxu.__version__}, a matrix accelerator of {config.size} x {config.size} elements",
        "SPDX-License-Identifier: BSD-2-Clause",
        f"Written by: {command}",
        "Configuration:",
        *(f"  {name} = {value}" for name, value in config.as_dict().items()),
    )
    return "".join(f"{comment} {line}\n" for line in lines)


def _relative_source(attribute: re.Match[str]) -> str:
    """An attribute without the folders of this machine."""
    places = (_relative(place) for place in attribute[2].split("|"))
    return f'{attribute[1]}"{"|".join(places)}"'


def _relative(place: str) -> str:
    """A place in a file of a package, as ``openmxu/rtl/core.py:12`` wherever the package is installed."""
    path = PurePath(place)
    for package in (openmxu.rtl, openmxu):  # in a clone the first is not in the folder of the second
        folder = PurePath(str(package.__file__)).parent
        if path.is_relative_to(folder):
            return str(PurePath(*package.__name__.split("."), path.relative_to(folder)))
    packages = "site-packages"
    if packages in path.parts:
        return str(PurePath(*path.parts[path.parts.index(packages) + 1 :]))
    project = PurePath(openmxu.__file__).parent.parent
    return str(path.relative_to(project)) if path.is_relative_to(project) else path.name


def _with_comments(verilog: str, design: ReadableDesign) -> str:
    """The Verilog with a comment before each module: its class and its instances."""

    def comment(module: re.Match[str]) -> str:
        kind = design.classes.get(module[2])
        paths = design.instances.get(module[2], ())
        words = "" if kind is None else f"{kind.__name__} of {kind.__module__.replace('.', '/')}.py"
        places = f"instances: {', '.join(paths)}" if paths else ""
        text = "; ".join(filter(None, (words, places)))
        return _comment(text) + module[0]

    return _MODULE.sub(comment, verilog)


def _comment(text: str) -> str:
    lines: Sequence[str] = textwrap.wrap(text, _WIDTH, initial_indent="// ", subsequent_indent="//   ")
    return "".join(f"{line}\n" for line in lines)
