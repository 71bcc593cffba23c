"""``openmxu simulate-board``: a board without hardware, at a pseudo-terminal."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from openmxu.cli.errors import InputError
from openmxu.cli.report import working

__all__ = ["simulate_board_command"]


def simulate_board_command(
    name: Annotated[str, typer.Argument(metavar="BOARD", help="ulx3s_85f, icebreaker or tang_nano_9k.")],
    link: Annotated[
        Path | None,
        typer.Option("--link", metavar="PATH", help="Make this symbolic link to the port as well, as long as it runs."),
    ] = None,
) -> None:
    """Simulate a board, print the port at which it answers, and serve it until interrupted.

    The board is the RTL of the bitstream's core and serial shell, without the UART: any baud rate is right. Other
    commands use its port like that of a board. The first run of a board compiles it, which takes up to a minute.
    """
    from openmxu.rtl.boards import BOARDS
    from openmxu.sim.serial import SimulatedBoard

    if name not in BOARDS:
        raise InputError(f"unknown board {name!r}; known: {', '.join(BOARDS)}")
    if link is not None:
        _check_free(link)
    with working(f"Building {name}"):
        board = SimulatedBoard(BOARDS[name].config)
    with board, _linked(link, board.port):
        typer.echo(board.port)
        # What reads the port's name from a pipe needs it now.
        typer.get_text_stream("stdout").flush()
        threading.Event().wait()


def _check_free(link: Path) -> None:
    """Check that a link can be made; the one that a killed simulation left behind may be replaced."""
    if link.is_symlink() and not link.exists():
        link.unlink()
    if os.path.lexists(link):
        raise InputError(f"cannot make the link {link}: there is a file of that name")
    if not link.absolute().parent.is_dir():
        raise InputError(f"cannot make the link {link}: there is no directory {link.absolute().parent}")


@contextmanager
def _linked(link: Path | None, port: str) -> Iterator[None]:
    if link is None:
        yield
        return
    try:
        link.symlink_to(port)
    except OSError as error:
        raise InputError(f"cannot make the link {link}: {(error.strerror or str(error)).lower()}") from None
    try:
        yield
    finally:
        # Another simulation may have made this link anew.
        if link.is_symlink() and os.readlink(link) == port:
            link.unlink()
