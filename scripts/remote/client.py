"""A client that looks for what others have left, runs the digits network and checks it, and leaves something behind.

    python -m scripts.remote.client ADDRESS PROGRAM SESSIONS RUNS

uses the device in so many sessions of so many runs, 0 for an endless session, and prints a line as JSON when it has the
device and when it gives it back.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch.isa import format_named
from openmxu.device import Device
from openmxu.models import DIGITS_MODEL, digits_test_split

__all__ = ["IMAGES", "Session", "leave_traces", "open_checked", "program_for", "traces"]

IMAGES, _ = digits_test_split()

_READ, _WRITE, _HALT = map(format_named, ("Read_Host_Memory", "Write_Host_Memory", "Halt"))
_NO_WEIGHTS = np.zeros(0, np.uint8)


def program_for(config: openmxu.Config, batch: int) -> openmxu.Program:
    """The digits network."""
    return openmxu.compile(DIGITS_MODEL, config, batch=batch)


def traces(device: Device) -> int:
    """The number of bytes in the unified buffer that are not 0."""
    rows = device.config.unified_buffer_rows
    host = np.full(rows * device.config.size, 255, np.uint8)
    device.execute([_WRITE(unified_buffer=0, host=0, rows=rows), _HALT()], host, _NO_WEIGHTS)
    return int(np.count_nonzero(host))


def leave_traces(device: Device) -> None:
    """Fill the unified buffer."""
    rows = device.config.unified_buffer_rows
    host = np.full(rows * device.config.size, 0xA5, np.uint8)
    device.execute([_READ(unified_buffer=0, host=0, rows=rows), _HALT()], host, _NO_WEIGHTS)


@dataclass(frozen=True)
class Session:
    """A session that has ended.

    Attributes
    ----------
    traces
        Bytes of others that it found.
    differing
        Outputs that are not what they should be.
    """

    traces: int
    differing: int


def open_checked(
    address: str, program: openmxu.Program, expected: NDArray[np.float32], runs: int, images: int = len(IMAGES)
) -> Session:
    """One session: look for traces, run, leave traces."""
    with openmxu.open_device(address) as device:
        found, differing = traces(device), 0
        device.load(program)
        for _ in range(runs):
            outputs = device.run(IMAGES[:images])["logits"]
            differing += int(np.count_nonzero(outputs != expected[:images]))
        leave_traces(device)
    return Session(found, differing)


def _main(address: str, path: str, sessions: int, runs: int) -> None:
    program = openmxu.Program.load(path)
    for _ in range(sessions):
        with openmxu.open_device(address) as device:
            _say("has it", traces(device))
            leave_traces(device)
            device.load(program)
            began, run = time.perf_counter(), 0
            while run < runs or not runs:
                device.run(IMAGES)
                run += 1
            _say("gives it back", time.perf_counter() - began)


def _say(what: str, number: float) -> None:
    print(json.dumps({"what": what, "number": number, "time": time.time()}), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
