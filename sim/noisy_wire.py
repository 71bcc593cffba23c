"""A bad cable: forwards bytes from one serial port to another, and corrupts some frames."""

from __future__ import annotations

import os
import random
import select
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from openmxu.arch.serial import FLAG
from openmxu.sim.pseudo_terminal import PseudoTerminal

__all__ = ["DAMAGES", "NoisyWire"]

_LOOK = 0.05
"""Seconds between checks whether to stop."""


def _flip(frame: bytearray, random: random.Random) -> bytearray:
    frame[random.randrange(len(frame))] ^= 1 << random.randrange(8)
    return frame


def _flip_burst(frame: bytearray, random: random.Random) -> bytearray:
    first = random.randrange(len(frame))
    for place in range(first, min(len(frame), first + random.randrange(2, 9))):
        frame[place] = random.randrange(256)
    return frame


def _lose_byte(frame: bytearray, random: random.Random) -> bytearray:
    del frame[random.randrange(len(frame))]
    return frame


def _repeat_byte(frame: bytearray, random: random.Random) -> bytearray:
    place = random.randrange(len(frame))
    frame.insert(place, frame[place])
    return frame


def _cut_off(frame: bytearray, random: random.Random) -> bytearray:
    return frame[: random.randrange(len(frame))]


def _repeat(frame: bytearray, random: random.Random) -> bytearray:
    return frame + frame


DAMAGES: dict[str, Callable[[bytearray, random.Random], bytearray]] = {
    "bit flipped": _flip,
    "burst of random bytes": _flip_burst,
    "byte lost": _lose_byte,
    "byte repeated": _repeat_byte,
    "cut off": _cut_off,
    "repeated": _repeat,
}
"""Kinds of damage to a frame, by name."""


class NoisyWire:
    """Forwards bytes between a serial port and a pseudo-terminal, in a thread. A context manager.

    Parameters
    ----------
    port
        The serial port at the far end.
    probability
        Fraction of the frames, in each direction, that are damaged; each in one of the ways of :data:`DAMAGES`.
    seed
        Seed of the random damages.

    Attributes
    ----------
    frames
        Frames so far, damaged ones included.
    damages
        How many of them were damaged in each way.
    """

    def __init__(self, port: str, *, probability: float, seed: int) -> None:
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be from 0 to 1, not {probability}")
        self._probability = probability
        self.frames = 0
        self.damages: Counter[str] = Counter()
        self._wire = PseudoTerminal()
        self._far = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._relay, args=(seed,), name="noisy wire", daemon=True)
        self._thread.start()

    @property
    def port(self) -> str:
        """The serial port at the near end, until the wire is closed."""
        return self._wire.name

    def close(self) -> None:
        """Cut the wire."""
        if not self._stops.is_set():
            self._stops.set()
            self._thread.join()
            self._wire.close()
            os.close(self._far)

    def __enter__(self) -> NoisyWire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _relay(self, seed: int) -> None:
        near, far = self._wire.near, self._far
        # A generator for each direction: damage to a frame does not depend on the timing of other frames.
        directions = {near: (far, random.Random(seed), bytearray()), far: (near, random.Random(~seed), bytearray())}
        while not self._stops.is_set():
            readable, _, _ = select.select(list(directions), [], [], _LOOK)
            for source in readable:
                target, generator, held = directions[source]
                try:
                    held += os.read(source, 4096)
                    self._write(target, self._pass_on(held, generator))
                except BlockingIOError:
                    continue
                except OSError:  # the far port was closed
                    return

    def _pass_on(self, held: bytearray, generator: random.Random) -> bytes:
        """Forward the complete frames in ``held``, and damage some of them."""
        result = bytearray()
        while (end := held.find(FLAG, 1)) >= 0:
            frame, held[:] = held[: end + 1], held[end + 1 :]
            self.frames += 1
            if generator.random() < self._probability:
                name, damage = generator.choice(list(DAMAGES.items()))
                self.damages[name] += 1
                frame = damage(frame, generator)
            result += frame
        return bytes(result)

    def _write(self, target: int, content: bytes) -> None:
        while content and not self._stops.is_set():
            _, writable, _ = select.select([], [target], [], _LOOK)
            if writable:
                content = content[os.write(target, content) :]
