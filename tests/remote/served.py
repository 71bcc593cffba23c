"""Servers and clients for tests: in this process, and in others that can be killed.

    python -m tests.remote.served serve PORT       serves a device whose executions do not end
    python -m tests.remote.served use ADDRESS      writes to the unified buffer of a device, then begins an execution

Both print a line when they are ready, a client also when it has to wait.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch.events import Event
from openmxu.arch.isa import Instruction, format_named
from openmxu.device import Device
from openmxu.models import DIGITS_MODEL
from openmxu.remote.address import Address
from openmxu.remote.server import Server
from openmxu.remote.settings import Protection
from openmxu.sim.interpreter import Interpreter

CERTIFICATES = Path(__file__).parent / "certificates"
CONFIG = openmxu.Config(size=4, unified_buffer_rows=64)
DIGITS_CONFIG = openmxu.Config.for_size(8)
LOOPBACK = Address("127.0.0.1", 0)
NO_WEIGHTS = np.zeros(0, np.uint8)
TOKEN = "a-token-of-the-tests"
TLS = {"certificate": CERTIFICATES / "server.pem", "key": CERTIFICATES / "server.key"}
SECRET = np.arange(1, 1 + CONFIG.size * 8, dtype=np.uint8)
"""Eight rows of the unified buffer."""

PATIENCE = 60
"""Time limit in seconds; reached only if something hangs."""

_READ, _WRITE, _HALT = map(format_named, ("Read_Host_Memory", "Write_Host_Memory", "Halt"))
_TAG = format_named("Debug_Tag")
ENDLESS = 7
"""The tag of a program that does not end on a :class:`Slow` device."""


class Slow(Interpreter):
    """An interpreter whose programs with a Debug_Tag ``ENDLESS`` run until ``may_end`` is set."""

    def __init__(self, config: openmxu.Config) -> None:
        super().__init__(config)
        self.runs = threading.Event()
        self.may_end = threading.Event()

    def execute(
        self, program: Iterable[Instruction], host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]
    ) -> list[Event]:
        events = super().execute(program, host_memory, weight_memory)
        if any(event.tag == ENDLESS for event in events):
            self.runs.set()
            self.may_end.wait()
        return events


@functools.cache
def digits_program() -> openmxu.Program:
    """Two images at a time."""
    return openmxu.compile(DIGITS_MODEL, DIGITS_CONFIG, batch=2)


@contextmanager
def serving(
    device: Device | None = None, *, heartbeat: float = 0.05, idle: float = 600, **protection: Any
) -> Iterator[Server]:
    """A server in this process."""
    given = Interpreter(CONFIG) if device is None else device
    server = Server(
        "interpreter", lambda: given, LOOPBACK, Protection(**protection), heartbeat=heartbeat, idle_seconds=idle
    )
    with server:
        yield server


def write_secret(device: Device) -> None:
    """Put ``SECRET`` into the first rows of the unified buffer."""
    device.execute([_READ(unified_buffer=0, host=0, rows=8), _HALT()], SECRET.copy(), NO_WEIGHTS)


def first_rows(device: Device) -> NDArray[np.uint8]:
    """The first rows of the unified buffer, as many as ``SECRET`` has."""
    host = np.full_like(SECRET, 255)
    device.execute([_WRITE(unified_buffer=0, host=0, rows=8), _HALT()], host, NO_WEIGHTS)
    return host


def run_endlessly(device: Device) -> None:
    """Begin an execution that does not end on a :class:`Slow` device."""
    device.execute([_TAG(tag=ENDLESS), _HALT()], np.zeros(0, np.uint8), NO_WEIGHTS)


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """This module in another process, and the first line that it prints; it is killed at the end."""
    command = [sys.executable, "-m", "tests.remote.served", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CERTIFICATES.parents[2]) as started:
        assert started.stdout is not None
        try:
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


def _main(what: str, where: str) -> None:
    if what == "serve":
        address = Address("127.0.0.1", int(where))
        server = Server("interpreter", lambda: Slow(CONFIG), address, Protection(), heartbeat=0.05)
        print(server.address, flush=True)
        threading.Event().wait()
    else:
        with openmxu.open_device(where, on_wait=lambda line: print(line, flush=True)) as device:
            write_secret(device)
            print("ready", flush=True)
            run_endlessly(device)


if __name__ == "__main__":
    _main(*sys.argv[1:])
