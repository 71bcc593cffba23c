"""Devices at an address, from the command line: serving one and using it."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

import openmxu as library
from openmxu.remote.client import RemoteDevice
from openmxu.sim.interpreter import Interpreter
from tests.cli.small_models import K, write_dense_model
from tests.remote.served import CERTIFICATES, DIGITS_CONFIG, TLS, TOKEN, serving

ACCESS = {"OPENMXU_REMOTE_TOKEN": TOKEN, "OPENMXU_REMOTE_CA": str(CERTIFICATES / "authority.pem")}
CONFIG = library.Config.for_size(4)


@pytest.fixture(scope="module")
def address():
    """An interpreter of size 4 with encryption and token."""
    with serving(Interpreter(CONFIG), token=TOKEN, **TLS) as server:
        yield str(server.address)


@pytest.fixture
def images(tmp_path):
    write_dense_model(tmp_path / "model.onnx")
    given = np.random.default_rng(0).integers(0, 256, (8, K)).astype(np.uint8)
    np.save(tmp_path / "x.npy", given)
    np.save(tmp_path / "labels.npy", np.zeros(8, np.int64))
    return given


def test_run_adopts_the_configuration(openmxu, address, images, tmp_path):
    run = ("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", "--device", address, "--json")
    result = openmxu(*run, environment=ACCESS).json
    assert (result["device"], result["size"]) == ("grpc", 4)
    program = library.compile(tmp_path / "model.onnx", CONFIG, batch=8)
    expected = program.run(Interpreter(CONFIG), images)["y"]
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected)


def test_evaluate(openmxu, address, images):
    run = ("evaluate", "model.onnx", "--data", "x.npy", "--labels", "labels.npy", "--device", address)
    assert openmxu(*run, "--json", environment=ACCESS).json["elements"] == len(images)
    openmxu(*run, "--workers", 2, environment=ACCESS).failed(2, "--workers is not for --device grpc://", "leave it out")


def test_waiting_is_said(openmxu, address, images):
    with serving(Interpreter(DIGITS_CONFIG), idle=0.1) as server, RemoteDevice(str(server.address)):
        run = ("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", "--device", server.address)
        result = openmxu(*run)  # it gets the device, because the other client does nothing
    assert result.status == 0
    assert result.stderr.startswith(f"openmxu: waiting for the device at {server.address}: 1 client comes first; ")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--size", 8), 2, ": leave it out, and the board's configuration is used"),
        (("--memory-latency", 9), 2, "--memory-latency is for the server: its device at grpc://"),
        (("--port", "/dev/ttyUSB0"), 2, "--port is for the server"),
    ],
)
def test_options_that_do_not_fit(openmxu, address, images, options, status, message):
    run = ("run", "model.onnx", "--input", "x.npy", "--output", "y.npy", "--device", address, *options)
    openmxu(*run, environment=ACCESS).failed(status, message)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("grpc", "an address must be grpc://HOST:PORT"),
        ("grpc://board", "an address must be grpc://HOST:PORT, as grpc://127"),
    ],
)
def test_wrong_addresses(openmxu, device, message):
    openmxu("demo", "--device", device).failed(2, message)


def test_refused_clients(openmxu, address):
    demo = ("demo", "--device", address)
    openmxu(*demo, environment=ACCESS | {"OPENMXU_REMOTE_TOKEN": "other"}).failed(1, "the token is missing or wrong")
    openmxu(*demo, environment={**ACCESS, "OPENMXU_REMOTE_CA": ""}).failed(1, "no openmxu server answers at grpc://")
    openmxu(*demo, environment={**ACCESS, "OPENMXU_REMOTE_CA": "none.pem"}).failed(2, "cannot read none.pem: no such")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--listen", "0.0.0.0:8790"), "0.0.0.0:8790 can be reached by other machines, which needs encryption"),
        (("--listen", "here"), "an address must be HOST:PORT, as 127.0.0.1:8790, not 'here'"),
        (("--certificate", "x.pem"), "a certificate and its key belong together: the key is missing"),
        (("--token-file", "none"), "cannot read none: no such file"),
        (("--device", "grpc://127.0.0.1:1"), "--device grpc://127.0.0.1:1 is served already"),
        (("--device", "serial"), "--device serial needs the port of the board"),
        (("--size", 3), "size must be a power of two"),
        (("--memory-latency", 9), "--memory-latency needs --device verilator"),
    ],
)
def test_what_cannot_be_served(openmxu, options, message):
    openmxu("serve", "--listen", "127.0.0.1:0", *options).failed(2, message)


def test_serve_until_interrupted():
    # A shell in which the tests run in the background lets them ignore the signal, and what they start inherits that.
    # The server itself listens again: gRPC's threads forbid to do so between fork and exec.
    listens = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"{listens}; runpy.run_module('openmxu.cli', run_name='__main__')"
    command = [sys.executable, "-c", run, "serve", "--size", "4", "--listen", "127.0.0.1:0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        try:
            line = server.stdout.readline()
            assert line.startswith("interpreter of size 4 at grpc://127.0.0.1:"), line or server.stderr.read()
            with library.open_device(line.split()[5].rstrip(";")) as device:
                assert device.config == CONFIG
                server.send_signal(signal.SIGINT)
                rest = server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0
    assert rest[0] == ""
    assert "Traceback" not in rest[1]
