"""One client has the device, others wait; nothing of a client is left for the next one."""

from __future__ import annotations

import queue
import signal
import threading

import pytest

import openmxu
from openmxu.device import DeviceError
from openmxu.remote.client import remote_configuration
from openmxu.remote.errors import ConnectionLostError, RemoteError
from openmxu.remote.server import Server
from openmxu.remote.settings import Protection
from openmxu.remote.turns import Place, Turns
from openmxu.sim.interpreter import Interpreter
from tests.remote.served import (
    CONFIG,
    LOOPBACK,
    PATIENCE,
    Slow,
    first_rows,
    process,
    run_endlessly,
    serving,
    write_secret,
)


def waiting_clients(address, count, order, on_wait=lambda message: None):
    """Threads that open the device one behind the other, note when they have it and give it back."""

    messages = queue.SimpleQueue()

    def note(message):
        on_wait(message)
        messages.put(message)

    def use(number):
        with openmxu.open_device(address, on_wait=note) as device:
            order.append((number, first_rows(device).any()))
            write_secret(device)

    for number in range(count):
        thread = threading.Thread(target=use, args=(number,), daemon=True)
        thread.start()
        messages.get(timeout=PATIENCE)  # it is in the queue
        yield thread


def test_three_clients_wait_in_order():
    order = []
    with serving() as server:
        address = str(server.address)
        with openmxu.open_device(address) as device:
            write_secret(device)
            threads = list(waiting_clients(address, 3, order))
            assert order == []
            assert remote_configuration(address) == CONFIG  # for which nobody waits
        for thread in threads:
            thread.join(PATIENCE)
    assert order == [(0, False), (1, False), (2, False)]


def test_waiting_client_is_told_who_has_the_device():
    messages = queue.SimpleQueue()
    with serving() as server:
        address = str(server.address)
        with openmxu.open_device(address):
            (thread,) = waiting_clients(address, 1, [], messages.put)
            message = messages.get(timeout=PATIENCE)
        thread.join(PATIENCE)
    assert message.startswith(f"waiting for the device at {address}: 1 client comes first; ")
    assert message.endswith(" has it now")


def test_killed_client_frees_the_device():
    """It is killed while the device is busy; the next client gets a device that holds nothing of it."""
    slow = Slow(CONFIG)
    with serving(slow) as server, process("use", server.address) as (client, line):
        assert line == "ready"
        assert slow.runs.wait(PATIENCE)
        order = []
        (thread,) = waiting_clients(str(server.address), 1, order)
        client.send_signal(signal.SIGKILL)
        client.wait()
        assert slow.unified_buffer.any()  # the device is still busy
        slow.may_end.set()
        thread.join(PATIENCE)
        assert order == [(0, False)]


def test_client_that_leaves_the_queue():
    order = []
    with serving() as server:
        address = str(server.address)
        with openmxu.open_device(address):
            with process("use", address) as (_, line):
                assert line.startswith("waiting")  # and is killed
            threads = list(waiting_clients(address, 2, order))
        for thread in threads:
            thread.join(PATIENCE)
    assert [number for number, _ in order] == [0, 1]


def test_idle_client_loses_the_device_if_others_wait():
    with serving(idle=0.2) as server:
        address = str(server.address)
        with openmxu.open_device(address) as device:
            order = []
            (thread,) = waiting_clients(address, 1, order)
            thread.join(PATIENCE)
            assert len(order) == 1
            with pytest.raises(ConnectionLostError, match=r"was idle for .* while another client waited; open"):
                device.reset()


def test_busy_client_keeps_the_device():
    slow = Slow(CONFIG)
    with serving(slow, idle=0.05) as server:
        address = str(server.address)
        with openmxu.open_device(address) as device:
            order = []
            thread = threading.Thread(target=run_endlessly, args=(device,), daemon=True)
            thread.start()
            assert slow.runs.wait(PATIENCE)
            (other,) = waiting_clients(address, 1, order)
            other.join(0.3)  # several times the limit
            assert order == []
            slow.may_end.set()
            thread.join(PATIENCE)
        other.join(PATIENCE)
    assert len(order) == 1


class Failing(Interpreter):
    """An interpreter that cannot be cleared."""

    def scrub(self):
        raise DeviceError("it is broken")


def test_device_that_cannot_be_cleared_is_opened_again():
    """A client never gets a device that may hold something of another one."""
    opened = []

    def open_it():
        opened.append(Failing(CONFIG) if len(opened) < 2 else Interpreter(CONFIG))
        return opened[-1]

    with Server("interpreter", open_it, LOOPBACK, Protection(), heartbeat=0.05) as server:
        with pytest.raises(RemoteError, match="cannot be cleared of the data of the client before"):
            openmxu.open_device(str(server.address))
        with openmxu.open_device(str(server.address)) as device:
            assert not first_rows(device).any()
    assert len(opened) == 3


def test_queue():
    turns = Turns()
    first, second, third = map(turns.join, ("a", "b", "c"))
    assert turns.begin(first)
    assert not turns.begin(second)
    assert turns.await_change(third, None, 0) == Place(2, "a")
    turns.give_up(second)
    assert turns.await_change(third, Place(2, "a"), 0) == Place(1, "a")
    turns.give_up(first)  # has no effect on the one that has the device
    assert len(turns) == 2
    turns.end(first)
    assert turns.await_change(third, Place(1, "a"), 0) == Place(0, "c")
    turns.close()
    assert not turns.begin(third)
    assert turns.await_change(second, None, 0) is None
