"""The errors that commands raise; each is reported as one line on stderr."""

from __future__ import annotations

import typer

from openmxu.arch.errors import OpenmxuError

__all__ = ["InputError", "RunError", "as_typed", "one_line"]


class RunError(OpenmxuError, typer.TyperException):
    """The command is valid, but running it failed; exit status 1."""

    exit_code = 1


class InputError(OpenmxuError, typer.TyperException):
    """An argument or an input file of the command is invalid; exit status 2."""

    exit_code = 2


def one_line(message: object) -> str:
    """The text of ``message`` with every run of white space, line ends included, as one blank."""
    return " ".join(str(message).split())


def as_typed(option: str) -> str:
    """The option of a parameter ``option`` of a command, as it is typed."""
    return f"--{option.replace('_', '-')}"
