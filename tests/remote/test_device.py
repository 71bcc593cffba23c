"""A device at an address does what the same device does here."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.arch.events import Counter
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import format_named
from openmxu.driver import IdentificationError
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.remote import contents
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.modelled import ModelledDevice
from tests.remote.served import (
    CERTIFICATES,
    CONFIG,
    DIGITS_CONFIG,
    NO_WEIGHTS,
    SECRET,
    TLS,
    TOKEN,
    digits_program,
    first_rows,
    serving,
    write_secret,
)

HALT = format_named("Halt")


@pytest.fixture(scope="module")
def address():
    with serving() as server:
        yield str(server.address)


@pytest.fixture
def device(address):
    with openmxu.open_device(address) as opened:
        yield opened


def test_digits_are_those_of_onnx_runtime():
    images, _ = digits_test_split()
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    with serving(Interpreter(DIGITS_CONFIG), token=TOKEN, **TLS) as server:
        access = {"authority": CERTIFICATES / "authority.pem", "token": TOKEN}
        with openmxu.open_device(str(server.address), **access) as device:
            program = openmxu.compile(DIGITS_MODEL, device.config, batch=64)  # no size is named
            assert np.array_equal(program.run(device, images)["logits"], expected)


def test_program_is_sent_once(address, monkeypatch):
    program = digits_program()
    images = digits_test_split()[0][:2]
    sent = []
    split = contents.split

    def counted(kind, content, **operation):
        sent.extend(["program"] * ("load" in operation and bool(content)))
        return split(kind, content, **operation)

    monkeypatch.setattr("openmxu.remote.connection.split", counted)
    with serving(Interpreter(DIGITS_CONFIG)) as server:
        for _ in range(2):  # two clients
            with openmxu.open_device(str(server.address)) as device:
                program.run(device, images)
    assert sent == ["program"]


def test_configuration_and_kind(device):
    assert device.config == CONFIG
    assert device.served == "interpreter"


def test_other_configuration_is_refused(address):
    with pytest.raises(IdentificationError, match=r"the device at grpc://.* is Config\(size=4.*, not Config\(size=8"):
        openmxu.open_device(address, DIGITS_CONFIG)


def test_memories_of_any_length(device):
    """Content of several messages, in both directions."""
    length = 3 * contents.CHUNK_BYTES + 12
    host = np.resize(SECRET, length)
    read, write = map(format_named, ("Read_Host_Memory", "Write_Host_Memory"))
    program = [read(unified_buffer=0, host=0, rows=2), write(unified_buffer=0, host=length - 8, rows=2), HALT()]
    expected = host.copy()
    expected[-8:] = host[:8]
    events = device.execute(program, host, NO_WEIGHTS)
    assert np.array_equal(host, expected)
    assert events == Interpreter(CONFIG).execute(program, host, NO_WEIGHTS)


def test_fault(device):
    program = [format_named("Debug_Tag")(tag=3), format_named("Read_Host_Memory")(unified_buffer=0, host=0, rows=9)]
    faults = []
    for one in (device, Interpreter(CONFIG)):
        with pytest.raises(openmxu.DeviceFault) as caught:
            one.execute([*program, HALT()], np.zeros(4, np.uint8), NO_WEIGHTS)
        faults.append(caught.value)
    remote, local = faults
    assert str(remote) == str(local)
    assert (remote.code, remote.index, remote.instruction, remote.events) == (
        *(local.code, local.index, local.instruction, local.events),
    )
    assert remote.code is FaultCode.HOST_WINDOW
    write_secret(device)  # the session goes on


def test_reset_and_scrub(device):
    write_secret(device)
    device.reset()
    assert np.array_equal(first_rows(device), SECRET)
    device.scrub()
    assert not first_rows(device).any()


def test_counters():
    with serving(ModelledDevice(CONFIG)) as server, openmxu.open_device(str(server.address)) as device:
        assert device.counters[Counter.CYCLES] == 0
        write_secret(device)
        assert device.counters[Counter.HOST_READ_BYTES] == SECRET.size
        device.clear_counters()
        assert set(device.counters.values()) == {0}


def test_errors_of_the_device(device):
    with pytest.raises(openmxu.NotLoadedError):
        device.run(np.zeros(1))
    with pytest.raises(ValueError, match="must end with Halt"):
        device.execute([], np.zeros(0, np.uint8), NO_WEIGHTS)
    program = digits_program()
    with pytest.raises(openmxu.InputError, match="compiled for"):
        device.load(program)


def test_closed_device(address):
    with openmxu.open_device(address) as device:
        pass
    with pytest.raises(openmxu.DeviceError, match=r"the device at grpc://127\.0\.0\.1:\d+ has been closed"):
        device.reset()
