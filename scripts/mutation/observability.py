"""Finds the bits of a flat netlist that reach an output of the core."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Pin", "observable_pins"]

Pin = tuple[str, str, int]
"""Name of a cell, name of a port, bit of the port."""

_BITWISE = frozenset({"$and", "$or", "$xor", "$not", "$pos"})
_CARRYING = frozenset({"$add", "$sub", "$mul", "$neg"})


def observable_pins(module: dict) -> set[Pin]:
    """The bits of cells that reach an output through any number of cells, registers and memories.

    Wide cells whose bits do not mix are traced bit by bit. A change of any other bit has no effect: synthesis would
    leave it out.

    Parameters
    ----------
    module
        A module from ``write_json`` of Yosys.
    """
    cells = module["cells"]
    drivers: dict[int, Pin] = {}
    writers: dict[str, list[str]] = {}
    for name, cell in cells.items():
        if cell["type"] == "$memwr_v2":
            writers.setdefault(cell["parameters"]["MEMID"], []).append(name)
        for port in _outputs(cell):
            drivers |= {bit: (name, port, index) for index, bit in enumerate(cell["connections"][port])}
    waiting = [bit for port in module["ports"].values() if port["direction"] == "output" for bit in port["bits"]]
    observable: set[Pin] = set()
    seen: set[int | str] = set()
    while waiting:
        bit = waiting.pop()
        if bit in seen or bit not in drivers:
            continue
        seen.add(bit)
        pin = drivers[bit]
        observable.add(pin)
        for source in _sources(cells, writers, *pin):
            if source not in observable:
                observable.add(source)
                waiting.append(cells[source[0]]["connections"][source[1]][source[2]])
    return observable


def _outputs(cell: dict) -> list[str]:
    return [port for port, direction in cell["port_directions"].items() if direction == "output"]


def _sources(cells: dict, writers: dict[str, list[str]], name: str, port: str, index: int) -> Iterator[Pin]:
    """The bits of inputs that a bit of an output depends on."""
    cell = cells[name]
    kind = cell["type"]
    inputs = {
        other: len(bits) for other, bits in cell["connections"].items() if cell["port_directions"][other] == "input"
    }
    if kind == "$memrd_v2":
        for writer in writers.get(cell["parameters"]["MEMID"], ()):
            yield from ((writer, "DATA", index), (writer, "EN", index))
            yield from ((writer, "ADDR", place) for place in range(len(cells[writer]["connections"]["ADDR"])))
    for other, width in inputs.items():
        if (kind == "$dff" and other == "D") or (kind == "$mux" and other != "S"):
            places = (index,)
        elif kind == "$pmux" and other == "B":
            places = range(index, width, inputs["A"])
        elif kind == "$pmux" and other == "A":
            places = (index,)
        elif kind in _BITWISE:
            places = (min(index, width - 1),)
        elif kind in _CARRYING:
            places = range(min(index + 1, width))
        else:
            places = range(width)
        yield from ((name, other, place) for place in places)
