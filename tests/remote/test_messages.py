"""device.binpb is what the compiler of protobuf makes of device.proto."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REMOTE = Path("openmxu/remote")


def test_compiled_definition_is_up_to_date(tmp_path):
    pytest.importorskip("grpc_tools", reason="the compiler of protobuf is not part of openmxu[remote]")
    made = tmp_path / "device.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--descriptor_set_out={made}"]
    subprocess.run([*command, str(REMOTE / "device.proto")], check=True, cwd=ROOT)
    assert made.read_bytes() == (ROOT / REMOTE / "device.binpb").read_bytes(), "docs/remote.md has the command"
