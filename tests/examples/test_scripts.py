"""Every ``network.py`` of the examples runs as a script with only the package installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/network.py"))


def test_no_example_is_missing() -> None:
    assert len(FOLDERS) == 9


@pytest.mark.parametrize("name", FOLDERS)
def test_writes_its_model(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name / "network.py"), "-o", str(tmp_path / "model.onnx")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"))
