"""Runs commands in processes that have already imported them, since a short command spends most of its time on imports.

    python -m tests.cli.fork_server DESCRIPTOR

reads commands from a connection, forks for each, and replies with its exit status.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import NamedTuple

from openmxu.cli import main
from openmxu.cli.application import run
from tests import short_searches

__all__ = ["Command", "ForkServer"]

_REPOSITORY = Path(__file__).parents[2]


class Command(NamedTuple):
    """Arguments of ``openmxu``, and the environment in which it runs.

    Attributes
    ----------
    streams
        Files for standard input, output and error.
    """

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    streams: tuple[str, str, str]


class ForkServer:
    """The server, as a child process of this one.

    Parameters
    ----------
    patience
        Time limit of a command in seconds.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._connection, theirs = Pipe()
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        # A process with several threads should not fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        descriptors = (theirs.fileno(),)
        self._process = Popen(command, cwd=_REPOSITORY, env=environment, stdin=DEVNULL, pass_fds=descriptors)
        theirs.close()

    def run(self, command: Command) -> int:
        """Run a command; returns its exit status, or minus the number of the signal that ended it."""
        self._connection.send(command)
        if not self._connection.poll(self._patience):
            raise TimeoutError(f"openmxu {' '.join(command.arguments)} does not end")
        return self._connection.recv()

    def close(self) -> None:
        """End the server."""
        self._connection.close()
        self._process.wait()


def _next_command(connection: Connection) -> Command | None:
    """The command that this process should run: one in each child, ``None`` in the server when the connection ends."""
    while True:
        try:
            command = connection.recv()
        except EOFError:
            return None
        child = os.fork()
        if not child:
            connection.close()
            return command
        _, status = os.waitpid(child, 0)
        connection.send(os.waitstatus_to_exitcode(status))


def _warm_up() -> None:
    """Run one command, because some modules are only imported then."""
    with contextlib.redirect_stdout(io.StringIO()):
        run(["bench", "gemm", "1", "1", "1", "--device", "interpreter"])
    gc.disable()  # commands are too short to produce much garbage


def _enter(command: Command) -> None:
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_APPEND)
    for stream, (path, mode) in enumerate(zip(command.streams, modes, strict=True)):
        descriptor = os.open(path, mode)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.argv = ["openmxu", *command.arguments]


if __name__ == "__main__":
    short_searches.begin()
    _warm_up()
    command = _next_command(Connection(int(sys.argv[1])))
    if command is not None:
        _enter(command)
        main()
