"""A program in the place of a board that a network is loaded into, at the other end of a pseudo-terminal."""

from __future__ import annotations

import binascii
import os
import threading
import tty

import numpy as np

import openmxu
from openmxu.embedded import program_image

ORIGIN = 0x40000000


class FakeBoard(threading.Thread):
    """Receives frames, checks that program and images arrive, and prints what the interpreter computes."""

    def __init__(self, program: openmxu.Program) -> None:
        super().__init__(daemon=True)
        self.noise = ("", "")
        self._master, slave = os.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        self._slave = slave
        self._program = program
        self._memory = bytearray(1 << 20)

    def run(self) -> None:
        while True:
            length, high, low = self._take(3)
            body = self._take(1 + length)
            assert binascii.crc_hqx(body, 0) == high << 8 | low
            os.write(self._master, b"K")
            place = int.from_bytes(body[1:5], "big") - ORIGIN
            if body[0] == 1:
                self._memory[place : place + length - 4] = body[5:]
            elif body[0] == 2:
                os.write(self._master, self._lines(place).replace(*self.noise).encode() + b"\4")
                return

    def close(self) -> None:
        self.join(10)
        os.close(self._slave)
        os.close(self._master)

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += os.read(self._master, count - len(data))
        return data

    def _lines(self, table: int) -> str:
        start, size, _, _, place, image_bytes, count = np.frombuffer(self._memory, "<u4", 7, table + 24)
        assert self._memory[start : start + size] == program_image(self._program)
        (segment,) = self._program.device_segments
        integers = np.frombuffer(self._memory, segment.inputs[0].stored, image_bytes * count, place)
        scale, zero = segment.inputs[0].scale[0], segment.inputs[0].zero_point
        images = ((integers.astype(np.float32) - zero) * np.float32(scale)).reshape(count, -1)
        with openmxu.open_device("interpreter", self._program.config) as device:
            (outputs,) = self._program.run(device, images).values()
        stored = np.rint(outputs / segment.outputs[0].scale[0] + segment.outputs[0].zero_point).astype(np.uint8)
        lines = [f"network network 1 {count}"]
        lines += [f"image {index} {row.argmax()} {row.tobytes().hex()}" for index, row in enumerate(stored)]
        return "\n".join([*lines, "cycles network total=500", ""])
