"""Servers that end, requests that are no requests: one error, no hang, and the server goes on."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import openmxu
from openmxu.device import DeviceError
from openmxu.remote import contents, kept_programs
from openmxu.remote.connection import Connection
from openmxu.remote.errors import ConnectionLostError, RemoteError
from openmxu.remote.messages import FailureKind, Request, grpc
from openmxu.remote.settings import Access
from openmxu.remote.versions import own_versions
from openmxu.sim.interpreter import Interpreter
from tests.remote.served import (
    CONFIG,
    PATIENCE,
    Slow,
    digits_program,
    first_rows,
    process,
    run_endlessly,
    serving,
    write_secret,
)


def test_nobody_listens():
    with serving() as server:
        address = str(server.address)
    with pytest.raises(RemoteError, match=f"no openmxu server answers at {address}, without encryption: "):
        openmxu.open_device(address)


def test_another_server():
    other = grpc.server(ThreadPoolExecutor(1))
    port = other.add_insecure_port("127.0.0.1:0")
    other.start()
    try:
        with pytest.raises(RemoteError, match="is no openmxu server of this version of the protocol"):
            openmxu.open_device(f"grpc://127.0.0.1:{port}")
    finally:
        other.stop(None).wait()


def test_server_killed_in_the_middle_of_a_run():
    with process("serve", 0) as (server, address), openmxu.open_device(address) as device:
        killer = threading.Timer(0.2, server.send_signal, (signal.SIGKILL,))
        killer.start()
        with pytest.raises(ConnectionLostError, match=f"the server at {address} is lost: .*; open the device again"):
            run_endlessly(device)
        with pytest.raises(ConnectionLostError, match="is lost"):
            device.reset()
        with process("serve", address.rpartition(":")[2]) as (_, again), openmxu.open_device(again) as other:
            write_secret(other)


def test_server_that_says_nothing():
    """It is stopped rather than killed: its connections stay."""
    with process("serve", 0) as (server, address), openmxu.open_device(address, patience=0.5) as device:
        server.send_signal(signal.SIGSTOP)
        # Until all of its threads have stopped, one of them may still answer.
        os.waitid(os.P_PID, server.pid, os.WSTOPPED)
        with pytest.raises(ConnectionLostError, match="it has said nothing for"):
            device.reset()
        server.send_signal(signal.SIGCONT)


def test_server_that_closes():
    slow = Slow(CONFIG)
    with serving(slow) as server, openmxu.open_device(str(server.address)) as device:
        closer = threading.Thread(target=server.close)
        failed = []

        def run():
            try:
                run_endlessly(device)
            except DeviceError as error:
                failed.append(str(error))

        runner = threading.Thread(target=run)
        runner.start()
        assert slow.runs.wait(PATIENCE)
        closer.start()
        runner.join(PATIENCE)
        assert failed == [f"the server at {server.address} is lost: the server ends; open the device again"]
        assert closer.is_alive()  # the device is busy
        slow.may_end.set()
        closer.join(PATIENCE)
        assert not slow.unified_buffer.any()


def test_interrupted_client():
    """A reply that comes later is not taken for that of the next request."""
    slow = Slow(CONFIG)
    with serving(slow) as server:
        with openmxu.open_device(str(server.address)) as device:
            replies = device._connection._replies

            class Interrupted:
                def get(self, timeout):
                    device._connection._replies = replies
                    raise KeyboardInterrupt

            device._connection._replies = Interrupted()
            with pytest.raises(KeyboardInterrupt):
                run_endlessly(device)
            with pytest.raises(ConnectionLostError, match="the client was interrupted while it waited for a reply"):
                device.reset()
            slow.may_end.set()
        with openmxu.open_device(str(server.address)) as device:
            device.reset()


@pytest.fixture(scope="module")
def server():
    with serving() as opened:
        yield opened


@pytest.fixture
def connection(server):
    opened = Connection(server.address, Access(), patience=PATIENCE)
    yield opened
    opened.close()
    with openmxu.open_device(str(server.address)) as device:  # the server goes on
        assert not first_rows(device).any()


MALFORMED = {
    "no operation": (b"", {}, "it has no operation"),
    "no action": (b"", {"action": 0}, "there is no action 0"),
    "unknown action": (b"", {"action": 77}, "there is no action 77"),
    "other digest": (b"abc", {"load": {"digest": b"x"}}, "the program is not the one of the digest"),
    "too few bytes": (
        *(b"abc", {"execute": {"instructions": 1}}),
        "instructions and memories are 16 bytes, but there are 3",
    ),
    "huge sizes": (b"", {"execute": {"instructions": 2**32 - 1, "host_bytes": 2**63}}, "but there are 0"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_are_refused(connection, name):
    content, operation, message = MALFORMED[name]
    reply, _ = connection.ask(content, **operation)
    assert reply.failure.kind == FailureKind.REFUSED
    assert reply.failure.message.startswith("the server refuses a malformed request: ")
    assert message in reply.failure.message
    assert connection.ask(action=1)[0].WhichOneof("result") == "done"


@pytest.mark.parametrize("content", [b"no program", b"PK\x03\x04" + bytes(100)])
def test_damaged_programs(connection, content):
    reply, _ = connection.ask(content, load={"digest": kept_programs.digest_of(content)})
    assert reply.failure.kind == FailureKind.VALUE
    assert reply.failure.message.startswith("what the client sent is no openmxu program, or damaged")


def test_programs_that_become_too_large(connection, monkeypatch):
    content = digits_program().to_bytes()
    monkeypatch.setattr(kept_programs, "MOST_BYTES", 1000)
    reply, _ = connection.ask(content, load={"digest": kept_programs.digest_of(content)})
    assert reply.failure.kind == FailureKind.VALUE
    assert "1000 are possible" in reply.failure.message


def test_unknown_segment(connection):
    program = digits_program()
    with serving(Interpreter(program.config)) as server, openmxu.open_device(str(server.address)) as device:
        device.load(program)
        for start, content, message in ((1, b"", "no segment of the program begins"), (0, b"x", "bytes, not 1")):
            reply, _ = device._connection.ask(content, run_segment={"start": start})
            assert reply.failure.kind == FailureKind.VALUE
            assert message in reply.failure.message
    reply, _ = connection.ask(run_segment={"start": 0})
    assert reply.failure.kind == FailureKind.NOT_LOADED


def test_content_without_end(connection, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(contents, "MOST_BYTES", 10)
        reply, _ = connection.ask(bytes(11), action=1)
    assert reply.failure.kind == FailureKind.REFUSED
    assert "may have 10 bytes, not 11" in reply.failure.message


def test_message_that_is_too_long(connection):
    connection._requests.put(Request(content=bytes(5 << 20)))
    with pytest.raises(ConnectionLostError, match="larger than max"):
        connection.ask(action=1)


def test_bytes_that_are_no_message(server, connection):
    connection.close()
    with grpc.insecure_channel(server.address.target) as channel:
        call = channel.stream_stream("/openmxu.remote.v1.Device/Session")
        with pytest.raises(grpc.RpcError, match="deserializing"):
            list(call(iter([b"\xff\xff\xff"]), metadata=tuple(own_versions().items()), timeout=PATIENCE))


class Defective(Interpreter):
    def reset(self):
        if self.unified_buffer.any():
            raise ZeroDivisionError("a defect")


def test_defect_of_the_server():
    with serving(Defective(CONFIG)) as server:
        with openmxu.open_device(str(server.address)) as device:
            write_secret(device)
            with pytest.raises(DeviceError, match=r"ZeroDivisionError: a defect \(a defect of openmxu at the server\)"):
                device.reset()
            with pytest.raises(ConnectionLostError):
                device.reset()
        with openmxu.open_device(str(server.address)) as device:
            assert not first_rows(device).any()


def test_keeping_few_programs():
    program = digits_program()
    files = [dataclasses.replace(program, multiply_adds=number).to_bytes() for number in range(3)]
    kept = kept_programs.KeptPrograms(most_bytes=len(files[0]) + len(files[2]))
    for content in (files[0], files[1]):
        kept.keep(content)
    assert kept.find(kept_programs.digest_of(files[0])) is not None
    kept.keep(files[2])
    assert [kept.find(kept_programs.digest_of(content)) is not None for content in files] == [True, False, True]
