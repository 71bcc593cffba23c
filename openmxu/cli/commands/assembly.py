"""``openmxu assemble`` and ``openmxu disassemble``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openmxu.arch.isa import encode_program
from openmxu.assembler import AssemblyError, assemble
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import STANDARD_STREAM, read_text, write_output
from openmxu.cli.options import OutputOption
from openmxu.cli.programs import is_program
from openmxu.disassembler import disassemble
from openmxu.program import Program
from openmxu.program_file import ProgramFileError, read_program

__all__ = ["assemble_command", "disassemble_command"]


@configured
def assemble_command(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Assembly text; - is stdin.")],
    output: OutputOption,
    choice: ConfigChoice = DEFAULTS,
) -> None:
    """Translate assembly to 16-byte instruction words.

    With --size, --preset or --profile the program must also be legal on that machine.
    """
    config = choice.config() if choice.is_given else None
    name = "<stdin>" if source == STANDARD_STREAM else str(source)
    try:
        program = assemble(read_text(source), config, name=name)
    except AssemblyError as error:
        raise InputError(str(error)) from None
    write_output(output, encode_program(program).tobytes())


def disassemble_command(
    words: Annotated[Path, typer.Argument(metavar="WORDS", help="Instruction words or compiled model; - is stdin.")],
    output: OutputOption = STANDARD_STREAM,
) -> None:
    """Translate 16-byte instruction words, or a compiled model's, to assembly."""
    try:
        if words == STANDARD_STREAM:
            program = read_program(Path("/dev/stdin"))
        elif is_program(words):
            program = list(Program.load(words).instructions)
        else:
            program = read_program(words)
    except ProgramFileError as error:
        raise InputError(str(error)) from None
    write_output(output, disassemble(program).encode())
