"""Programs in C around the driver, compiled with the compiler's checks and sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from openmxu.embedded import driver_files

HERE = Path(__file__).parent
FLAGS = "-std=c99 -Wall -Wextra -Werror -pedantic -g -fsanitize=address,undefined -fno-sanitize-recover=all"


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``build("name.c", {file: text}, *arguments)``: a program of a file of this folder, the driver and more files."""
    compiler = shutil.which("gcc")
    assert compiler is not None, "these tests need gcc: apt install gcc"

    def compiled(source: str, more: dict[str, str] | None = None, *arguments: str) -> Path:
        folder = tmp_path_factory.mktemp("c")
        files = driver_files() | (more or {})
        for name, text in files.items():
            (folder / name).write_text(text)
        sources = [HERE / source, *(folder / name for name in files if name.endswith(".c"))]
        command = [compiler, *FLAGS.split(), f"-I{folder}", *sources, *arguments]
        result = subprocess.run([*command, "-o", folder / "program"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return folder / "program"

    return compiled
