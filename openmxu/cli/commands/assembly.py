"""``openmxu assemble`` and ``openmxu disassemble``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from openmxu.arch.isa import encode_program
from openmxu.assembler import AssemblyError, assemble
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import ASSEMBLY_SUFFIXES, STANDARD_STREAM, read_text, write_output
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
    numbers: Annotated[
        bool,
        typer.Option(
            "--numbers", help="Add each instruction's number, as --waves-instruction and trace count, as a comment."
        ),
    ] = False,
) -> None:
    """Translate 16-byte instruction words, or a compiled model's, to assembly."""
    if words.suffix == ".onnx":
        raise InputError(f"{words} is a model, not a program; openmxu compile {words} -o FILE.mxu makes one of it")
    if words.suffix in ASSEMBLY_SUFFIXES:
        raise InputError(f"{words} is assembly already: openmxu assemble translates it to instruction words")
    layers: list[str] = []
    try:
        if words == STANDARD_STREAM:
            program = read_program(Path("/dev/stdin"))
        elif is_program(words):
            compiled = Program.load(words)
            program = list(compiled.instructions)
            names = [" ".join(layer.name.split()) for layer in compiled.layers]
            layers = [names[layer] if layer >= 0 else "" for layer in compiled.layer_numbers]
        else:
            program = read_program(words)
    except ProgramFileError as error:
        raise InputError(str(error)) from None
    text = disassemble(program)
    if numbers:
        text = _with_numbers(text, layers or [""] * len(program))
    write_output(output, text.encode())


def _with_numbers(text: str, layers: Sequence[str]) -> str:
    """Each line with its number and the name of its layer in a comment; it assembles to the same words."""
    lines = zip(text.splitlines(), layers, strict=True)
    return "".join(f"{line}  # {f'{number} {layer}'.rstrip()}\n" for number, (line, layer) in enumerate(lines))
