"""The loader against the firmware's own receiver, compiled for this machine, at the other end of a line with noise."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from scripts.litex.loader import Loader, LoadError

FIRMWARE = Path(__file__).parents[2] / "scripts" / "litex" / "firmware"
ORIGIN = 0x40000000
SIZE = 8192
HEADERS = {
    "mem.h": f"#define MAIN_RAM_BASE {ORIGIN:#x}U\n#define MAIN_RAM_SIZE {SIZE}U\n",
    "soc.h": "#define CONFIG_CLOCK_FREQUENCY 160\n",  # a frame ends after a gap of 20 ms
}

FLAGS = "-std=gnu99 -O1 -g -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize-recover=all"

Noise = Callable[[int, bytes], bytes]


class Line:
    """Pipes to a process as a serial port; ``noise`` changes what is sent, given the number of frames before it."""

    def __init__(self, process: subprocess.Popen[bytes], noise: Noise) -> None:
        self.timeout: float | None = None
        self.frames = 0
        self._process = process
        self._noise = noise

    @property
    def in_waiting(self) -> int:
        return 0

    def read(self, size: int = 1, /) -> bytes:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], self.timeout)[0]:
            return b""
        return os.read(self._process.stdout.fileno(), size)

    def write(self, data: bytes, /) -> int:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), self._noise(self.frames, data))
        self.frames += 1
        return len(data)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    assert compiler is not None, "these tests need gcc: apt install gcc"
    folder = tmp_path_factory.mktemp("receiver")
    (folder / "generated").mkdir()
    for name, text in HEADERS.items():
        (folder / "generated" / name).write_text(text)
    sources = [FIRMWARE / "receive.c", Path(__file__).with_name("receiver.c")]
    command = [compiler, *FLAGS.split(), f"-I{folder}", f"-I{FIRMWARE}", *map(str, sources)]
    command += ["-o", str(folder / "receiver")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder / "receiver"


@pytest.fixture
def connect(receiver: Path) -> Iterator[Callable[..., tuple[Loader, Line]]]:
    processes = []

    def connected(noise: Noise = lambda _, data: data) -> tuple[Loader, Line]:
        process = subprocess.Popen([receiver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        processes.append(process)
        line = Line(process, noise)
        return Loader(line, ORIGIN, timeout=1.0, quiet=0.06), line

    yield connected
    for process in processes:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def random_parts() -> list[tuple[int, bytes]]:
    values = np.random.default_rng(3)
    return [(place, values.bytes(size)) for place, size in ((0, 8), (13, 1), (100, 1000), (2049, 4001), (SIZE - 3, 3))]


def check_memory(loader: Loader, parts: list[tuple[int, bytes]]) -> None:
    (line,) = loader.run()
    memory = bytes.fromhex(line)
    assert len(memory) == SIZE
    for place, content in parts:
        assert memory[place : place + len(content)] == content
    assert not any(memory[8:13])  # nothing beside the parts


def flip(frame: int) -> Noise:
    return lambda index, data: data[:-1] + bytes([data[-1] ^ 4]) if index == frame else data


def lose(frame: int, count: int) -> Noise:
    return lambda index, data: data[:-count] if index == frame else data


def insert(frame: int, garbage: bytes) -> Noise:
    return lambda index, data: garbage + data if index == frame else data


@pytest.mark.parametrize(
    ("noise", "again"),
    [
        pytest.param(lambda _, data: data, False, id="none"),
        pytest.param(flip(0), True, id="the first answer"),
        pytest.param(flip(5), True, id="a bit"),
        pytest.param(lose(5, 3), True, id="lost bytes"),
        pytest.param(lose(25, 1), True, id="a lost byte of the last frame"),
        pytest.param(insert(0, b"\x90\x00"), True, id="bytes before the first frame"),
        pytest.param(insert(9, b"\xff"), True, id="a byte between frames"),
    ],
)
def test_contents_arrive(connect, noise, again):
    loader, line = connect(noise)
    parts = random_parts()
    loader.connect()
    loader.write(parts)
    written = line.frames
    check_memory(loader, parts)
    assert (written > 1 + sum(-(-len(content) // 248) for _, content in parts)) is again


@pytest.mark.parametrize("place", [SIZE, SIZE - 2, -4])
def test_addresses_outside_the_dram_are_refused(connect, place):
    loader, _ = connect()
    loader.connect()
    with pytest.raises(LoadError, match="refuses the address"):
        loader.write([(place, b"1234")])


def test_a_line_that_damages_everything(connect):
    loader, _ = connect(lambda _, data: data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(LoadError, match="finds damaged frames"):
        loader.connect()


class Silent:
    """A port at which nobody is."""

    timeout: float | None = None
    in_waiting = 0

    def read(self, size: int = 1, /) -> bytes:
        return b""

    def write(self, data: bytes, /) -> int:
        return len(data)


class Talking(Silent):
    """A board with another program, which never stops."""

    def read(self, size: int = 1, /) -> bytes:
        return b"x" * 4096


class Stopping(Silent):
    """A board that listens, and stops within a line."""

    def __init__(self) -> None:
        self._left = bytearray()

    def read(self, size: int = 1, /) -> bytes:
        data = bytes(self._left[:size])
        del self._left[:size]
        return data

    def write(self, data: bytes, /) -> int:
        self._left += b"K" + b"network digits 1 2\nimage 0" * (data[3] == 2)
        return len(data)


def test_nobody_answers():
    with pytest.raises(LoadError, match="does not answer"):
        Loader(Silent(), ORIGIN).connect()


def test_another_program_on_the_board():
    with pytest.raises(LoadError, match=r"does not listen; it keeps sending 'x+'"):
        Loader(Talking(), ORIGIN, timeout=0.01).connect()


def test_a_board_that_stops():
    loader = Loader(Stopping(), ORIGIN, timeout=3)
    loader.connect()
    lines = loader.run()
    assert next(lines) == "network digits 1 2"
    with pytest.raises(LoadError, match="nothing for 3 s; its last words: 'image 0'"):
        next(lines)
