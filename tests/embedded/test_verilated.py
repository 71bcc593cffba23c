"""The driver in C runs a network on the Verilated AXI shell, and finds out what goes wrong there."""

from __future__ import annotations

import subprocess

import numpy as np

import openmxu
from openmxu.embedded import c_files
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.verilator import AXI, library_path
from scripts.faults import CONFIG
from tests.embedded.running import ENVIRONMENT


def test_digits(build, tmp_path):
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=24, effort=0)
    library = library_path(CONFIG, design=AXI)
    options = [str(library), f"-Wl,-rpath,{library.parent}", "-DOPENMXU_EXTERNAL_ACCESS"]
    options.append("-DOPENMXU_STATUS_READS=8000")
    firmware = build("verilated.c", c_files(program, "digits"), *options)
    images, _ = digits_test_split()
    (tmp_path / "images").write_bytes(images.tobytes())
    arguments = [tmp_path / "images", tmp_path / "scores"]
    result = subprocess.run([firmware, *arguments], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert result.returncode == 0, result.stderr
    expected = program.run(openmxu.open_device("interpreter", CONFIG), images)["logits"]
    scores = np.fromfile(tmp_path / "scores", np.float32).reshape(expected.shape)
    assert np.array_equal(scores, expected)
    assert int(result.stdout) > program.multiply_adds / CONFIG.size**2
