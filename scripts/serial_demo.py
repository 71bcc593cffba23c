#!/usr/bin/env python3
"""Classify handwritten digits on a simulated board at the end of a bad serial cable, and compare with ONNX Runtime.

    python -m scripts.serial_demo --size 4 --corrupt 0.01

The board is the RTL of the serial shell, compiled, at a pseudo-terminal; a relay damages the given part of the frames
in each direction; the driver opens a second pseudo-terminal at its other end with pyserial. Exit status 1 when an
output differs.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import openmxu
from openmxu.driver import MappedDevice
from openmxu.driver.serial_transport import SerialTransport, open_port
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.noisy_wire import NoisyWire
from openmxu.sim.serial import SimulatedBoard


def main() -> int:
    """Run the demo; returns the exit status."""
    options = _options()
    config = openmxu.Config.for_size(options.size)
    images, _ = digits_test_split()
    images = images[: options.images]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    program = openmxu.compile(DIGITS_MODEL, config, batch=options.batch or len(images))
    with (
        SimulatedBoard(config) as board,
        NoisyWire(board.port, probability=options.corrupt, seed=options.seed) as wire,
    ):
        transport = SerialTransport(open_port(wire.port), wire.port, timeout=0.1, attempts=100)
        with MappedDevice(transport) as device:
            device.load(program)
            start = time.perf_counter()
            statistics, transferred = transport.statistics, []
            for _ in range(options.runs):
                before = statistics.bytes_sent + statistics.bytes_received
                (logits,) = device.run(images).values()
                transferred.append(transport.statistics.bytes_sent + transport.statistics.bytes_received - before)
            seconds = time.perf_counter() - start
        damages = dict(wire.damages)
        damaged, frames, cycles = sum(damages.values()), wire.frames, board.cycles
    print(f"an array of {config.size} × {config.size}, {len(images)} images, {seconds:.1f} s, {cycles:,} cycles")
    print(f"bytes sent and received by the driver, run by run: {', '.join(f'{count:,}' for count in transferred)}")
    print(f"frames on the wire: {frames:,}, damaged: {damaged:,} ({damaged / frames:.2%}), seed {options.seed}")
    for name in sorted(damages):
        print(f"  {name}: {damages[name]:,}")
    print(f"found bad by the driver: {statistics.bad:,}")
    print(f"sent again by the driver: {statistics.sent_again:,}, by the board: {statistics.received_again:,}")
    mismatches = int(np.count_nonzero(logits != expected))
    print(f"outputs that differ from ONNX Runtime: {mismatches} of {logits.size:,}")
    return 1 if mismatches else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4, help="S of the array (default %(default)s)")
    parser.add_argument("--images", type=int, default=360, help="how many, at most 360 (default %(default)s)")
    parser.add_argument("--batch", type=int, help="images of one execution (default all)")
    parser.add_argument("--runs", type=int, default=1, help="of all these images (default %(default)s)")
    parser.add_argument("--corrupt", type=float, default=0.01, help="part of the frames (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what happens to which frame (default %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
