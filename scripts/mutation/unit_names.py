"""Maps parts of a netlist to units, the modules of openmxu.rtl that describe them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amaranth.hdl import Fragment

__all__ = ["unit_of", "units"]

_RTL = "openmxu.rtl."


def units(fragment: Fragment, top: str) -> dict[str, str]:
    """The unit of every instance in an elaborated component, by the instance's path from ``top`` on.

    An instance whose class is not in openmxu.rtl, like a FIFO of Amaranth's, belongs to the component around it.
    """
    return dict(_walk(fragment, top, ""))


def unit_of(module: str, units: dict[str, str]) -> str:
    """The unit of a module of the generated netlist, which is named after the path of its instance."""
    # Amaranth numbers the names of submodules that are also names of signals.
    return units[re.sub(r"\$\d+", "", module)]


def _walk(fragment: Fragment, path: str, unit: str) -> Iterator[tuple[str, str]]:
    modules = (type(origin).__module__ for origin in fragment.origins or ())
    unit = next((name.removeprefix(_RTL) for name in modules if name.startswith(_RTL)), unit)
    yield path, unit
    for submodule, name, _ in fragment.subfragments:
        yield from _walk(submodule, f"{path}.{name}", unit)
