"""Amaranth components in Yosys's intermediate language, without the words of memories that start as zero.

Amaranth writes a bit for each bit of every memory: 200 MB for a unified buffer of 24 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Fragment, Signal, Value
from amaranth.hdl._ast import SignalDict
from amaranth.hdl._ir import build_netlist
from amaranth.lib import wiring

__all__ = ["classes_of", "ports_of", "to_rtlil"]


class _ModuleEmitter(rtlil.ModuleEmitter):
    def emit_memory(self, cell_idx: int, cell: Any) -> None:
        if any(cell.init):
            super().emit_memory(cell_idx, cell)


def ports_of(component: wiring.Component) -> list[Signal]:
    """The signals among the members of a component; others are constants, like ``ready`` of a stream that always is."""
    members = (Value.cast(value) for _, _, value in component.signature.flatten(component))
    return [value for value in members if isinstance(value, Signal)]


def classes_of(fragment: Fragment, path: str) -> Iterator[tuple[str, type]]:
    """The class of each component in an elaborated one, by its path: ``path`` and the names of submodules."""
    components = (type(origin) for origin in fragment.origins or () if isinstance(origin, wiring.Component))
    if kind := next(components, None):
        yield path, kind
    for submodule, name, _ in fragment.subfragments:
        yield from classes_of(submodule, f"{path}.{name}")


def to_rtlil(
    component: Elaboratable | Fragment, name: str, platform: object, ports: Sequence[Signal], *, sources: bool = False
) -> str:
    """The modules of a component; the first one, ``name``, has these ports besides ``clk`` and ``rst``.

    With ``sources``, attributes name the file and the line of each statement.
    """
    # What rtlil.convert does, but for the emitter.
    netlist = build_netlist(Fragment.get(component, platform), ports=ports, name=name)
    names: Any = SignalDict()
    empty = rtlil.EmptyModuleChecker(netlist)
    design = rtlil.Design(emit_src=sources)
    for number, module in enumerate(netlist.modules):
        if not empty.is_empty(number):
            builder = design.module(".".join(module.name), src_loc=module.src_loc)
            if number == 0:
                builder.attribute("top", 1)
            _ModuleEmitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(design)
