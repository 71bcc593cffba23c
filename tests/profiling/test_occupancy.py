"""The occupancy of the unified buffer, against a count row by row."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.arch.effects import Memory, accesses
from openmxu.arch.isa import Opcode, Register
from openmxu.compiler import compile_network, conv_network, gemm
from openmxu.profiling import Timeline, occupancy, predicted_timeline
from openmxu.profiling.occupancy import Occupancy

CONFIG = openmxu.Config(size=4)


def counted(program: openmxu.Program, timeline: Timeline) -> list[int]:
    """Live rows in each cycle, from each row's own history."""
    history: dict[int, list[list[int]]] = {}
    registers = dict.fromkeys(Register, 0)
    for number, instruction in enumerate(program.instructions):
        touched = [
            access for access in accesses(instruction, registers, CONFIG) if access.memory is Memory.UNIFIED_BUFFER
        ]
        for access in sorted(touched, key=lambda access: access.writes):
            for row in range(access.first, access.end):
                if access.writes:
                    history.setdefault(row, []).append([int(timeline.begun[number])])
                else:
                    history[row][-1].append(int(timeline.done[number]))
        if instruction.opcode is Opcode.SET_CONFIGURATION:
            registers[Register(instruction["register"])] = instruction["value"]
    live = np.zeros(timeline.cycles + 1, int)
    for written, *read in (life for lives in history.values() for life in lives):
        live[written : max(read, default=written)] += 1
    return live.tolist()


@pytest.mark.parametrize("what", ["product", "convolution"])
def test_occupancy(what):
    if what == "product":
        program = gemm(40, 50, 30, CONFIG)
    else:
        program = compile_network(conv_network(5, 6, 9, 8, kernel=3, stride=1, pool=2), CONFIG, 2)
    timeline = predicted_timeline(program)
    found = occupancy(program, timeline)
    place = np.searchsorted(found.cycle, np.arange(timeline.cycles + 1), side="right") - 1
    expected = counted(program, timeline)
    assert np.where(place < 0, 0, found.rows[place]).tolist() == expected
    assert found.peak == max(expected) > 0
    assert found.available == CONFIG.unified_buffer_rows


def test_fewer_points_keep_the_peak():
    rows = np.array([1, 9, 2, 3, 7, 0])
    fewer = Occupancy(np.arange(6), rows, 16).at_most(3)
    assert (fewer.cycle.tolist(), fewer.rows.tolist()) == ([0, 2, 4], [9, 3, 7])
