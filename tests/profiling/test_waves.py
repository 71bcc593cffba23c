"""Companions of waveforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmxu.arch import Config
from openmxu.compiler import gemm
from openmxu.disassembler import format_instruction
from openmxu.profiling import predicted_timeline
from openmxu.profiling.waves import companion_files, instruction_cycles
from openmxu.program import Program

CONFIG = Config.for_size(4)


@pytest.fixture(scope="module")
def program() -> Program:
    return gemm(8, 8, 8, CONFIG)


def test_cycles_of_an_instruction(program: Program) -> None:
    timeline = predicted_timeline(program)
    last = len(program.instructions) - 1
    first, end = instruction_cycles(program, last)
    assert first < timeline.begun[last] <= timeline.done[last] < end
    assert instruction_cycles(program, 0)[0] == 0
    with pytest.raises(IndexError, match=f"no instruction {last + 1}: the program has 0 to {last}"):
        instruction_cycles(program, last + 1)


def test_every_word_has_its_text(program: Program) -> None:
    files = companion_files(Path("w.vcd"), CONFIG, program.instructions)
    lines = dict(line.split(" ", 1) for line in files[Path("w.vcd.instructions")].splitlines())
    for instruction in program.instructions:
        assert lines[f"{instruction.word:032x}"] == format_instruction(instruction)


def test_lists_name_the_same_signals() -> None:
    files = companion_files(Path("w.fst"), CONFIG, [])
    gtkwave = [line.partition("[")[0] for line in files[Path("w.fst.gtkw")].splitlines() if line.startswith("TOP.")]
    commands = [line.split(" ", 1) for line in files[Path("w.fst.sucl")].splitlines()]
    assert gtkwave == [argument for command, *rest in commands if command == "variable_add" for argument in rest]
    assert "TOP.openmxu_core.dispatcher.check.word" in gtkwave
    lite = companion_files(Path("w.vcd"), Config.preset("icebreaker"), [])
    assert "openmxu_core" not in lite[Path("w.vcd.sucl")]
