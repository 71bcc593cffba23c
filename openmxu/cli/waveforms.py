"""Cycles of waveforms, and the files beside them, for the commands that write waveforms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from openmxu.arch import Config
from openmxu.arch.isa import Instruction
from openmxu.cli.errors import InputError
from openmxu.cli.files import write_output
from openmxu.disassembler import format_instruction
from openmxu.program import Program

__all__ = ["shown_cycles", "waveform_row", "write_companions"]


def shown_cycles(
    program: Program | None, waves: Path | None, cycles: str | None, instruction: int | None
) -> tuple[int, int] | None:
    """The first and the last cycle that a waveform should have; ``None`` for all.

    Parameters
    ----------
    program
        The program to which ``instruction`` belongs.
    waves, cycles, instruction
        Values of the options ``--waves``, ``--waves-cycles`` and ``--waves-instruction``.

    Raises
    ------
    InputError
        They contradict each other, or there are no such cycles.
    """
    for name, value in (("cycles", cycles), ("instruction", instruction)):
        if value is not None and waves is None:
            raise InputError(f"--waves-{name} needs --waves FILE")
    if cycles is not None and instruction is not None:
        raise InputError("--waves-cycles and --waves-instruction exclude each other")
    if cycles is not None:
        found = re.fullmatch(r"(\d{1,18}):(\d{1,18})", cycles, re.ASCII)
        if found is None or int(found[1]) > int(found[2]):
            raise InputError(f"--waves-cycles must be FROM:TO, as in 1000:1200, not {cycles!r}")
        return int(found[1]), int(found[2])
    if instruction is None or program is None:
        return None
    from openmxu.profiling.waves import instruction_cycles
    from openmxu.sim.cycle_model import UnpredictedError

    try:
        return instruction_cycles(program, instruction)
    except (IndexError, UnpredictedError) as error:
        raise InputError(f"--waves-instruction: {error}") from None


def waveform_row(
    waves: Path, cycles: tuple[int, int] | None, program: Program | None = None, instruction: int | None = None
) -> tuple[str, str]:
    """The line of a command's output that names a waveform, its cycles and the instruction that it shows."""
    text = str(waves)
    if cycles is not None:
        text += f": cycles {cycles[0]:,} to {cycles[1]:,}"
    if program is not None and instruction is not None:
        text += f", instruction {instruction} ({format_instruction(program.instructions[instruction])})"
    return "waveform", text


def write_companions(waves: Path, config: Config, instructions: Iterable[Instruction]) -> None:
    """Write lists of signals and the text of instructions beside a waveform.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    from openmxu.profiling.waves import companion_files

    for path, text in companion_files(waves, config, instructions).items():
        write_output(path, text.encode())
