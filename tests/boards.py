"""Simulated boards, started as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = "board"


@contextmanager
def simulated_board(name: str, folder: Path) -> Iterator[Path]:
    """A process that simulates a board; the link to its port in a folder."""
    command = [sys.executable, "-m", "openmxu.cli", "simulate-board", name, "--link", LINK]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    link = folder / LINK
    try:
        port = process.stdout.readline().strip()
        assert os.readlink(link) == port
        yield link
    finally:
        process.terminate()
        assert process.wait(60) == 128 + 15
        process.stdout.close()
    assert not os.path.lexists(link)
