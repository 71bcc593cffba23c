"""What goes with a waveform: the cycles to look at, lists of signals for its viewers, and names of its instructions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction
from openmxu.disassembler import format_instruction
from openmxu.profiling.timeline import predicted_timeline
from openmxu.program import Program

__all__ = ["companion_files", "instruction_cycles"]

_MARGIN = 8
"""Cycles before and after an instruction: the check takes six, and its end is seen a few later."""

_PORTS = ("host_read__request", "host_read__data", "host_write__request", "host_write__data")
_WORD = "openmxu_core.dispatcher.check.word"
_HEADS = ("TOP.clk", "TOP.busy", "TOP.finished", "TOP.index")
_UNITS = ("host_read", "host_write", "matrix", "activation")


def instruction_cycles(program: Program, number: int) -> tuple[int, int]:
    """The first and the last cycle around an instruction of a program, by the cycle model, with a margin.

    Raises
    ------
    IndexError
        The program has no such instruction.
    openmxu.sim.cycle_model.UnpredictedError
        The cycle model does not know the core.
    """
    count = len(program.instructions)
    if not 0 <= number < count:
        raise IndexError(f"there is no instruction {number}: the program has 0 to {count - 1}")
    timeline = predicted_timeline(program)
    begin = min(int(timeline.accepted[number]), int(timeline.begun[number]))
    return max(0, begin - _MARGIN), int(timeline.done[number]) + _MARGIN


def companion_files(waveform: Path, config: Config, program: Iterable[Instruction]) -> dict[Path, str]:
    """Files to write beside a waveform, by path: signals for GTKWave (.gtkw) and for Surfer (.sucl), and the text of
    each instruction word for GTKWave (.instructions)."""
    words = waveform.with_name(f"{waveform.name}.instructions")
    groups = _signals(config)
    return {
        words: _instruction_texts(program),
        waveform.with_name(f"{waveform.name}.gtkw"): _gtkwave(waveform, words, groups),
        waveform.with_name(f"{waveform.name}.sucl"): _surfer(groups),
    }


def _signals(config: Config) -> dict[str, list[str]]:
    """Paths of signals by group, those with an instruction word with their bits."""
    words = ["TOP.instructions__payload[127:0]"]
    groups = {"clock": [*_HEADS[:3], f"{_HEADS[3]}[31:0]"]}
    if not config.features.is_sequential:
        words.append(f"TOP.{_WORD}[127:0]")
        scoreboard = "TOP.openmxu_core.dispatcher.queues.scoreboard"
        groups["units"] = [
            f"{scoreboard}.allocate[3:0]",
            f"{scoreboard}.started[3:0]",
            *(f"TOP.openmxu_core.dispatcher.queues.queue_{unit}.take" for unit in _UNITS),
            "TOP.openmxu_core.dispatcher.weight_commands.input__valid",
            "TOP.openmxu_core.increments[20:0]",
        ]
    streams = [*_PORTS, "weights__request", "weights__data", "events"]
    groups["memories and events"] = [f"TOP.{stream}__{end}" for stream in streams for end in ("valid", "ready")]
    return {"instructions": [*words, "TOP.instructions__valid", "TOP.instructions__ready"], **groups}


def _instruction_texts(program: Iterable[Instruction]) -> str:
    """A line for each distinct word: its 32 hexadecimal digits, and its text."""
    words = {instruction.word: instruction for instruction in program}
    return "".join(f"{word:032x} {format_instruction(instruction)}\n" for word, instruction in words.items())


def _gtkwave(waveform: Path, words: Path, groups: dict[str, list[str]]) -> str:
    lines = [f'[dumpfile] "{waveform.resolve()}"']
    for group, signals in groups.items():
        lines += ["@200", f"-{group}"]  # a comment
        for signal in signals:
            # Hexadecimal and right-justified; an instruction word is looked up in the file as well.
            has_text = signal.endswith("[127:0]")
            lines += ["@2022", f"^1 {words.resolve()}", signal] if has_text else ["@22", signal]
    return "\n".join(lines) + "\n"


def _surfer(groups: dict[str, list[str]]) -> str:
    lines = []
    for group, signals in groups.items():
        lines += [f"divider_add {group}", *(f"variable_add {signal.partition('[')[0]}" for signal in signals)]
    return "\n".join([*lines, "zoom_fit"]) + "\n"
