"""Runs the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Result:
    """What a command printed and its exit status."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that the command printed; checks that it succeeded and printed nothing else."""
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


Command = Callable[..., Result]


@pytest.fixture
def openmxu(tmp_path: Path) -> Command:
    """``openmxu(*arguments, stdin="", environment={...})`` runs the command in ``tmp_path``."""

    def run(*arguments: object, stdin: str | bytes = b"", environment: Mapping[str, str] | None = None) -> Result:
        process = subprocess.run(
            [
                sys.executable,
                "-m",
                "openmxu.cli",
                *(argument if isinstance(argument, bytes) else str(argument) for argument in arguments),
            ],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
            timeout=300,
        )
        return Result(process.returncode, process.stdout.decode(), process.stderr.decode())

    return run
