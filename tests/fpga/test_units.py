"""Logic by unit: a cell's component is found by its name, by the net that it drives, or by the readers of that net."""

from __future__ import annotations

import pytest

from scripts.docs.sections import with_section
from scripts.fpga.units import logic_cells, table, units_of

MODULES = frozenset({"core", "core.adder", "core.adder.register", "core.other"})


def cell(kind: str, inputs: list[int], outputs: list[int]) -> dict:
    return {
        "type": kind,
        "port_directions": {"I": "input", "O": "output"},
        "connections": {"I": [*inputs, "0"], "O": outputs},
    }


MODULE = {
    "cells": {
        "$flatten\\core.\\adder.$auto$alumacc.cc:485:replace_alu$7.slice[0]": cell("CCU2C", [1, 2], [3, 4]),
        "core.adder.register.value_TRELLIS_FF_Q": cell("TRELLIS_FF", [3], [5]),
        # Drives a named net.
        "$abc$12$lut$aiger$1": cell("LUT4", [5], [6]),
        # Drives an unnamed net, which is read by two cells of the adder and one of the other component.
        "$abc$12$lut$aiger$2": cell("LUT4", [6], [7]),
        "$abc$12$lut$aiger$3": cell("LUT4", [7], [1]),
        "$abc$12$lut$aiger$4": cell("LUT4", [7], [2]),
        "core.other$3.memory.0": cell("TRELLIS_DPR16X4", [7], [9]),
        # Its output is not read.
        "$abc$12$lut$aiger$5": cell("LUT4", [9], [10]),
        "core.scope": {"type": "$scopeinfo", "port_directions": {}, "connections": {}},
    },
    "netnames": {
        "core.other.flag": {"bits": [6]},
        "core.adder.first": {"bits": [1, 2]},
        "core.second": {"bits": [1]},
        "core.adder.register.value": {"bits": [5]},
        "$abc$12$new": {"bits": [7]},
    },
}


def test_cells_belong_to_the_component_of_their_name_or_net() -> None:
    assert units_of(MODULE, MODULES) == {
        "$flatten\\core.\\adder.$auto$alumacc.cc:485:replace_alu$7.slice[0]": "core.adder",
        "core.adder.register.value_TRELLIS_FF_Q": "core.adder.register",
        "$abc$12$lut$aiger$1": "core.other",
        "$abc$12$lut$aiger$2": "core.adder",
        "$abc$12$lut$aiger$3": "core.adder",
        "$abc$12$lut$aiger$4": "core.adder",
        "core.other$3.memory.0": "core.other",
        "$abc$12$lut$aiger$5": "",
    }


def test_table_includes_inner_components() -> None:
    rows = [line.split(" | ")[:3] for line in table(MODULE, MODULES, depth=2).splitlines()[2:]]
    assert rows == [
        ["| all", "13", "1"],
        ["| core", "12", "1"],
        ["| · other", "7", "0"],
        ["| · adder", "5", "1"],
    ]


def test_components_that_differ_in_numbers_share_a_line() -> None:
    cells = {f"array.element_{row}_{column}.sum": cell("CCU2C", [1], [2]) for row in range(3) for column in range(4)}
    cells["array.control_0.flag"] = cell("CCU2C", [1], [3])
    modules = {"array", "array.control_0", *(name.removesuffix(".sum") for name in cells)}
    rows = [line.split(" | ")[:2] for line in table({"cells": cells, "netnames": {}}, modules, depth=2).splitlines()]
    assert rows[3:] == [["| array", "26"], ["| · element × 12", "24"], ["| · control", "2"]]


def test_logic_cells() -> None:
    assert logic_cells({"LUT4": 3, "CCU2C": 2, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 9}) == 3 + 4 + 6


def test_sections_are_replaced_by_name() -> None:
    document = "a\n<!-- units: begin -->\nold\n<!-- units: end -->\nb\n"
    assert with_section(document, "units", "new\n") == document.replace("old", "new")
    with pytest.raises(ValueError, match="there must be lines <!-- units: begin -->"):
        with_section("a\n", "units", "new\n")
