"""What a command raises when it cannot do what it was asked for; both end as one line on stderr."""

from __future__ import annotations

import typer

__all__ = ["InputError", "RunError", "one_line"]


class RunError(typer.TyperException):
    """The command was right, and running it failed; exit status 1."""

    exit_code = 1


class InputError(typer.TyperException):
    """An argument or a file given to the command is not what it has to be; exit status 2."""

    exit_code = 2


def one_line(message: object) -> str:
    """The text of ``message`` with every run of white space, line ends included, as one blank."""
    return " ".join(str(message).split())
