"""Resets are copied by unit, and each flip-flop keeps an equivalent reset."""

import copy
from collections import Counter

from scripts.fpga.ecp5.reset_copies import copy_resets

FLUSH, PORT, RESET, CLOCK, NEXT = 2, 3, 4, 5, 6
FIRST = 10


def flip_flop(data, reset, clock, output):
    directions = {"DI": "input", "LSR": "input", "CLK": "input", "Q": "output"}
    connections = {"DI": [data], "LSR": [reset], "CLK": [clock], "Q": [output]}
    return {"type": "TRELLIS_FF", "parameters": {}, "port_directions": directions, "connections": connections}


def design(sizes):
    """Registers in units, all reset by the OR of a port and a register."""
    gate = {
        "type": "LUT4",
        "parameters": {"INIT": "1110111011101110"},
        "port_directions": {"A": "input", "B": "input", "Z": "output"},
        "connections": {"A": [FLUSH], "B": [PORT], "Z": [RESET]},
    }
    cells = {"flush": flip_flop(NEXT, PORT, CLOCK, FLUSH), "gate": gate}
    for unit, size in sizes.items():
        for index in range(size):
            bit = FIRST + len(cells)
            cells[f"{unit}.register_{index}"] = flip_flop(bit, RESET, CLOCK, bit)
    ports = {"rst": {"direction": "input", "bits": [PORT]}, "next": {"direction": "input", "bits": [NEXT]}}
    return {"modules": {"top": {"ports": ports, "cells": cells, "netnames": {}}}}


def drivers(cells):
    return {
        cell["connections"][port][0]: name
        for name, cell in cells.items()
        for port, direction in cell["port_directions"].items()
        if direction == "output"
    }


def test_each_unit_has_a_separate_equivalent_driver():
    sizes = {"core.array": 300, "core.buffer": 200, "core.queue": 150, "shell": 10, "pins": 3}
    before = design(sizes)
    after = copy.deepcopy(before)
    assert copy_resets(after, "top") == 3
    cells, old = after["modules"]["top"]["cells"], before["modules"]["top"]["cells"]
    driver = drivers(cells)
    assert len(driver) == len(cells), "two cells drive one bit"
    used = Counter()
    for name, cell in old.items():
        if name in ("flush", "gate"):
            continue
        gate = driver[cells[name]["connections"]["LSR"][0]]
        used[gate] += 1
        assert cells[gate]["parameters"] == old["gate"]["parameters"]
        (flush,), (port,) = (cells[gate]["connections"][pin] for pin in "AB")
        assert port == PORT
        register = cells[driver[flush]]
        assert register["connections"] == old["flush"]["connections"] | {"Q": [flush]}
        assert {**cells[name]["connections"], "LSR": 0} == {**cell["connections"], "LSR": 0}
    assert sorted(used.values()) == [13, 150, 200, 300]


def test_a_reset_of_few_flip_flops_has_no_copies():
    before = design({"core.array": 300, "core.buffer": 200})
    after = copy.deepcopy(before)
    assert copy_resets(after, "top") == 0
    assert after == before


def test_a_register_that_resets_is_copied_itself():
    netlist = design({"core.array": 300, "core.buffer": 300})
    cells = netlist["modules"]["top"]["cells"]
    del cells["gate"]
    cells["flush"]["connections"]["Q"] = [RESET]
    assert copy_resets(netlist, "top") == 1
    copies = {cells[name]["connections"]["LSR"][0] for name in cells if "register" in name}
    assert {driver for bit, driver in drivers(cells).items() if bit in copies} == {"flush", "flush$copy1"}
    assert cells["flush$copy1"]["connections"]["DI"] == [NEXT]
