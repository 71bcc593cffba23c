"""``--device serial``: errors before a board answers."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.models import DIGITS_MODEL
from openmxu.sim.pseudo_terminal import PseudoTerminal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("demo", "--device", "serial"),
            "--device serial needs the port of the board, as in --device serial:/dev/ttyUSB1",
        ),
        (("demo", "--port", "/dev/ttyUSB0"), "--port needs --device serial:PORT"),
        (("demo", "--device", "interpreter", "--baud", 9600), "--baud needs --device serial:PORT"),
        (("demo", "--device", "serial:a", "--port", "b"), "--port and --device serial:a exclude each other"),
        (("demo", "--device", "serial:"), "'serial:' is not one of 'interpreter', "),
        (("demo", "--device", "axi:/dev/ttyUSB0"), "'axi:/dev/ttyUSB0' is not one of 'interpreter', "),
        (("compile", DIGITS_MODEL, "--report", "--baud", 9600), "--baud needs --device serial:PORT"),
        (("compile", DIGITS_MODEL, "--report", "--device", "axi"), "--device axi has no configuration of its own"),
        (("bench", "gemm", 1, 1, 1, "--device", "serial"), "--device serial is for openmxu run and openmxu demo"),
    ],
)
def test_options(openmxu, arguments, message):
    openmxu(*arguments).failed(2, message)


def test_no_such_port(openmxu):
    openmxu("demo", "--device", "serial", "--port", "/dev/no-such-port").failed(1, "cannot open /dev/no-such-port: ")


def test_no_device_answers(openmxu):
    wire = PseudoTerminal()
    openmxu("demo", "--device", "serial", "--port", wire.name).failed(1, f"{wire.name}: no answer to")
    wire.close()


def test_a_board_has_no_waveform(openmxu, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 64), np.float32))
    run = ("run", DIGITS_MODEL, "-i", "x.npy", "-o", "y.npy", "--waveform", "w.vcd")
    openmxu(*run, "--device", "serial", "--port", "/dev/null").failed(2, "--waves needs --device verilator")


def test_missing_pyserial_is_one_line(openmxu, tmp_path):
    """A module that raises ImportError takes the place of a missing one."""
    (tmp_path / "serial.py").write_text("raise ImportError")
    result = openmxu("demo", "--device", "serial", "--port", "x", environment={"PYTHONPATH": str(tmp_path)})
    result.failed(1, "pip install 'openmxu[serial]'")
