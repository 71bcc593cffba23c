#!/usr/bin/env python3
"""Measure a device at an address, and kill its clients and its server.

    python -m scripts.remote --device interpreter --size 8 --connects 200

serves the device with TLS and a token from another process. Parts: the digits network against ONNX Runtime, with the
time of a run there and here; connects, of which a part ends with the death of the client or the server; three clients
that queue. Exit status 1 when an output differs, a client sees something of another one, or a server does not end well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch.isa import format_named
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL
from openmxu.remote.client import remote_configuration
from openmxu.remote.errors import ConnectionLostError, RemoteError
from scripts.remote.client import IMAGES, leave_traces, open_checked, program_for, traces
from scripts.remote.served import Served

_HALT = format_named("Halt")

_PATIENCE = 120
"""Seconds after which something counts as a hang."""

_BATCH = 36
"""Images of one execution."""

_LATEST_KILL = 0.3
"""Seconds after which at most a client or a server is killed while it works."""


def main() -> int:
    """Run all parts; returns the exit status."""
    options = _options()
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: IMAGES})
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder), options.device, options.size)
        os.environ.update(served.environment)
        served.start()
        problems = _digits(served.address, options, expected)
        path = Path(folder, "digits.mxu")
        program_for(remote_configuration(served.address), _BATCH).save(path)
        problems += _connects(served, path, options, expected)
        problems += _queue(served, path, options)
        status = served.stop()
    print(f"the server ends on Ctrl-C with status {status}")
    return 1 if problems or status else 0


def _digits(address: str, options: argparse.Namespace, expected: NDArray[np.float32]) -> int:
    """Outputs and times of runs at the address and here."""
    config, differing = remote_configuration(address), 0
    print(f"{options.device}, {config.size} × {config.size}, TLS and token, {len(IMAGES)} images")
    print(f"  the fastest of {options.runs}, as other programs disturb the others")
    connects = [_seconds(lambda: openmxu.open_device(address).close()) for _ in range(options.runs)]
    print(f"  connect, until the device is there and clear: {1e3 * min(connects):.1f} ms")
    _print_trips(address, options.runs)
    for batch in (len(IMAGES), _BATCH, 1):
        program = program_for(config, batch)
        fastest = []
        for name in (address, options.device):
            with openmxu.open_device(name, config) as device:
                began = time.perf_counter()
                device.load(program)
                loading = time.perf_counter() - began
                times = []
                for _ in range(options.runs):
                    began = time.perf_counter()
                    outputs = device.run(IMAGES)["logits"]
                    times.append(time.perf_counter() - began)
                    differing += int(np.count_nonzero(outputs != expected))
            fastest.append(1e3 * min(times))
            if name == address:
                first = loading
        there, here = fastest
        executions = program.executions(len(IMAGES))
        print(
            f"  batch {batch}: load {1e3 * first:.1f} ms; run {there:.1f} ms there, {here:.1f} ms here: "
            f"{there - here:+.1f} ms per run, {(there - here) / executions:+.2f} ms per execution of {executions}"
        )
    print(f"  outputs that differ from ONNX Runtime: {differing} of {6 * options.runs * expected.size:,}")
    return differing


def _print_trips(address: str, runs: int) -> None:
    """What a request costs beside the work of the device, which has nothing to do here."""
    memory = np.zeros(IMAGES.size, np.uint8)
    with openmxu.open_device(address) as device:
        for size in (0, memory.size):
            times = sorted(
                _seconds(lambda: device.execute([_HALT()], memory[:size], memory[:0]))  # noqa: B023  # called at once
                for _ in range(50 * runs)
            )
            fastest, median = 1e3 * times[0], 1e3 * times[len(times) // 2]
            print(f"  a request with {size:,} bytes and its reply: {fastest:.2f} ms, median {median:.2f} ms")


def _connects(served: Served, path: Path, options: argparse.Namespace, expected: NDArray[np.float32]) -> int:
    """Connects that end well, with the death of the client, or with that of the server."""
    chance = random.Random(options.seed)
    program = openmxu.Program.load(path)
    outcomes: Counter[str] = Counter()
    found = differing = hangs = 0
    began = time.perf_counter()
    for number in range(options.connects):
        kind = "server killed" if number % 20 == 10 else "client killed" if number % 4 == 1 else "ended well"
        outcomes[kind] += 1
        moment = chance.uniform(0, _LATEST_KILL)
        if kind == "ended well":
            session = open_checked(served.address, program, expected, 1, images=chance.randint(1, len(IMAGES)))
            found, differing = found + session.traces, differing + session.differing
        elif kind == "client killed":
            found += _kill_client(served.address, path, moment)
        else:
            there, has_hung = _kill_server(served, program, moment)
            found, hangs = found + there, hangs + has_hung
    seconds = time.perf_counter() - began
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(outcomes.items()))
    print(f"{options.connects} connects in {seconds:.0f} s: {kinds}; seed {options.seed}")
    print(f"  hangs: {hangs}; outputs that differ: {differing}; bytes of another client that were there: {found}")
    return found + differing + hangs


def _kill_client(address: str, path: Path, moment: float) -> int:
    """Kill a client that runs endlessly; returns the bytes of others that it found."""
    command = [sys.executable, "-m", "scripts.remote.client", address, str(path), "1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        line = client.stdout.readline()
        time.sleep(moment)
        client.kill()
    return int(json.loads(line)["number"])


def _kill_server(served: Served, program: openmxu.Program, moment: float) -> tuple[int, bool]:
    """Kill the server while a client runs, and start it again; returns the bytes of others, and whether that hung."""
    ended = threading.Event()
    found = []

    def run() -> None:
        try:
            with openmxu.open_device(served.address) as device:
                found.append(traces(device))
                leave_traces(device)
                device.load(program)
                while True:
                    device.run(IMAGES)
        except (ConnectionLostError, RemoteError):
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(moment)
    served.kill()
    has_hung = not ended.wait(_PATIENCE)
    served.start()
    return sum(found), has_hung


def _queue(served: Served, path: Path, options: argparse.Namespace) -> int:
    """The throughput of one client and of three, who take turns."""
    sessions, runs, found = 6, options.runs, 0
    rates = {}
    for clients in (1, 3):
        each = sessions // clients
        command = [sys.executable, "-m", "scripts.remote.client", served.address, str(path), str(each), str(runs)]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
        lines = []
        for process in processes:
            output, _ = process.communicate(timeout=_PATIENCE)
            lines += [json.loads(line) for line in output.splitlines()]
        found += sum(line["number"] for line in lines if line["what"] == "has it")
        busy = [line["number"] for line in lines if line["what"] == "gives it back"]
        span = max(line["time"] for line in lines) - min(line["time"] for line in lines)
        rates[clients] = sessions * runs * len(IMAGES) / span
        print(
            f"{clients} client{'s' if clients > 1 else ''}, {each} sessions of {runs} runs each: {rates[clients]:,.0f} "
            f"images per second; the device was lent {sum(busy) / span:.0%} of the time"
        )
        if len(busy) != sessions:
            found += 1
    return int(found)


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="interpreter", help="the served device (default %(default)s)")
    parser.add_argument("--size", type=int, default=8, help="S of the array (default %(default)s)")
    parser.add_argument("--connects", type=int, default=200, help="how many (default %(default)s)")
    parser.add_argument("--runs", type=int, default=20, help="runs that are measured (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of death (default %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
