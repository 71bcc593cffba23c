"""Runs the real command, each time in a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fork_server import Command, ForkServer

_PATIENCE = 300
"""Time limit of a command in seconds."""


@dataclass(frozen=True)
class Result:
    """Exit status and output of a command."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The JSON object that the command printed; checks that it succeeded and printed nothing else."""
        assert self.status == 0, self.stderr
        result = json.loads(self.stdout)
        assert isinstance(result, dict)
        assert len(self.stdout.splitlines()) == 1
        return result

    def failed(self, status: int, *parts: str) -> None:
        """Check that the command failed with ``status`` and one line on stderr that contains ``parts``."""
        assert self.status == status, f"status {self.status}, not {status}: {self.stderr}"
        assert self.stdout == ""
        assert self.stderr.startswith("openmxu: error: ")
        assert len(self.stderr.splitlines()) == 1
        assert self.stderr.endswith("\n")
        for part in parts:
            assert part in self.stderr


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """The process that starts the commands of a session."""
    server = ForkServer(_PATIENCE)
    yield server
    server.close()


@pytest.fixture
def openmxu(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Callable[..., Result]:
    """``openmxu(*arguments, stdin="", environment={...})`` runs the command in ``tmp_path``.

    It is forked from a process that has already imported the command, unless ``environment`` affects imports.
    """
    streams = tmp_path_factory.mktemp("streams")

    def run(*arguments: object, stdin: str | bytes = b"", environment: Mapping[str, str] | None = None) -> Result:
        words = [os.fsdecode(argument) if isinstance(argument, bytes) else str(argument) for argument in arguments]
        files = tuple(streams / name for name in ("stdin", "stdout", "stderr"))
        for path, contents in zip(files, (stdin.encode() if isinstance(stdin, str) else stdin, b"", b""), strict=True):
            path.write_bytes(contents)
        variables = {**os.environ, **(environment or {})}
        if any(name.startswith("PYTHON") for name in environment or {}):
            status = _start(words, tmp_path, variables, *files)
        else:
            status = fork_server.run(Command(tuple(words), str(tmp_path), variables, tuple(map(str, files))))
        return Result(status, *(path.read_bytes().decode() for path in files[1:]))

    return run


def _start(
    words: list[str], folder: Path, variables: Mapping[str, str], stdin: Path, stdout: Path, stderr: Path
) -> int:
    with stdin.open("rb") as source, stdout.open("wb") as output, stderr.open("wb") as errors:
        command = [sys.executable, "-m", "openmxu.cli", *words]
        process = subprocess.run(
            command,
            stdin=source,
            stdout=output,
            stderr=errors,
            check=False,
            cwd=folder,
            env=variables,
            timeout=_PATIENCE,
        )
    return process.returncode
