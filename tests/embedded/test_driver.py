"""The driver in C on registers that play a device, with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.arch.faults import CORE_FAULTS, FaultCode
from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import CONFIGURATION, BusPort
from openmxu.arch.scrub import scrub_program
from openmxu.embedded import driver_files, program_image
from openmxu.embedded.image_layout import CHECKED, HEADER, TENSOR, checksum
from openmxu.models import DIGITS_MODEL
from openmxu.program import Program
from tests.embedded.running import ENVIRONMENT

CONFIG = openmxu.Config(size=4, activation_lanes=2)


def statuses() -> list[str]:
    """The names of ``openmxu_status`` in the order of their numbers."""
    body = re.search(r"typedef enum \{(.*?)\} openmxu_status;", driver_files()["openmxu.h"], re.DOTALL)
    assert body is not None
    return re.findall(r"^\s*OPENMXU_(\w+)", body.group(1), re.MULTILINE)


def field(name: str) -> int:
    """The word of a field in the header."""
    return sum(words for _, words, _ in HEADER[: [other for other, _, _ in HEADER].index(name)])


def signed(image: np.ndarray) -> np.ndarray:
    """The image with the checksum of its words."""
    image[CHECKED - 2 : CHECKED] = checksum(image[CHECKED:])
    return image


@pytest.fixture(scope="session")
def program() -> Program:
    return openmxu.compile(DIGITS_MODEL, CONFIG, batch=2, effort=0)


@pytest.fixture(scope="session")
def image(program: Program) -> np.ndarray:
    return np.frombuffer(program_image(program), "<u4")


@pytest.fixture(scope="session")
def firmware(build: Callable[..., Path]) -> Path:
    return build("firmware.c", {}, "-DOPENMXU_EXTERNAL_ACCESS")


@pytest.fixture
def run(firmware: Path, image: np.ndarray, tmp_path: Path) -> Callable[..., list[str]]:
    """``run(contents, name=value)``: the lines of a run, with names in place of the numbers of statuses."""

    def ran(contents: np.ndarray | bytes = image, **settings: int) -> list[str]:
        path = tmp_path / "image"
        path.write_bytes(bytes(contents))
        arguments = [f"{name}={value}" for name, value in settings.items()]
        command = [firmware, path, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        assert result.returncode == 0, result.stdout + result.stderr
        names = statuses()
        return [
            re.sub(r"^(open|load|run|scrub) (\d+)$", lambda found: f"{found[1]} {names[int(found[2])]}", line)
            for line in result.stdout.splitlines()
        ]

    return ran


def last(lines: list[str]) -> str:
    return lines[-1]


def test_run(run, program, image):
    """The device gets the addresses of image and host memory, and caches are cleaned before and invalidated after."""
    header = {name: int(image[field(name)]) for name, words, _ in HEADER if words == 1}
    ring, weights = (0x10000 + header[name] for name in ("ring", "weights"))
    rings = (len(program.instructions) + 1) * WORD_BYTES
    (output,) = program.device_segments[0].outputs
    start = (
        f"start ring {ring:#x} {rings:#x} {rings - WORD_BYTES:#x} host 0x8000 {header['host_bytes']:#x} "
        f"weights {weights:#x} {len(program.weights):#x} limit {1 << 26:#x}"
    )
    after = f"invalidate {output.offset} {output.extent(2, 4)}"
    one = [f"clean {header['host_bytes']}", start, after, "run OK"]
    loading = ["reset", "open OK", f"clean {rings}", f"clean {len(program.weights)}", "load OK"]
    assert run(runs=2) == [*loading, *one, *one]


def test_separate_buffers(run):
    lines = run(copies=1)
    assert last(lines) == "run OK"
    assert lines[-3].startswith("start ring 0x40010 ")
    assert " weights 0x80000 " in lines[-3]


@pytest.mark.parametrize("code", CORE_FAULTS, ids=lambda code: code.name)
def test_faults(run, code):
    lines = run(fault=int(code), index=40, runs=2)
    again = ["clear fault", "run STOPPED", f"fault {int(code)} 40 0 0 0"]
    assert lines[-3:] == again
    assert lines[-8:-5] == again
    assert lines.count("reset") == 1


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("port", BusPort, ids=lambda port: port.name)
def test_bus_errors(run, port, late):
    lines = run(
        fault=int(FaultCode.BUS_ERROR), index=7, port=int(port), response=3, error_address=0x123456789, late=late
    )
    assert lines[-3:] == ["reset", "run STOPPED", f"fault 13 7 {int(port)} 3 0x123456789"]


def test_time_outs(run):
    assert run(fault=int(FaultCode.TIME_OUT), index=9)[-3:] == ["reset", "run STOPPED", "fault 14 9 0 0 0"]


def test_waiting(run):
    assert last(run(polls=5)) == "run OK"
    assert last(run(polls=5, synchronizations=3)) == "run OK"
    assert run(polls=5, patience=3)[-2:] == ["reset", "run GAVE_UP"]


def test_broken_devices(run):
    assert last(run(identification=0)) == "open NO_DEVICE"
    assert last(run(map=9)) == "open OTHER_REGISTERS"
    assert last(run(stuck=1)) == "open STUCK"
    assert last(run(stuck=8)) == "run STUCK"  # FETCHING
    assert run(unplugged=1)[-2:] == ["reset", "run STUCK"]


def test_a_device_that_was_stuck_is_reset_first(run):
    lines = run(stuck=8, heals=1, runs=3)
    assert [line for line in lines if line.startswith(("run", "reset"))] == [
        *("reset", "run STUCK", "reset", "run OK", "run OK")
    ]


@pytest.mark.parametrize("number", range(len(CONFIGURATION)), ids=CONFIGURATION)
def test_other_configurations(run, number):
    assert last(run(wrong_config=number)) == "load OTHER_CONFIGURATION"


def test_buffers(run):
    assert last(run(host_missing=1)) == "load TOO_SMALL"
    assert last(run(copies=1, ring_missing=1)) == "load TOO_SMALL"
    assert last(run(copies=1, weight_missing=1)) == "load TOO_SMALL"
    for name in ("address", "host_address"):
        assert last(run(**{name: 0x10800})) == "load MISALIGNED"
    assert last(run(copies=1, ring_address=0x40008)) == "load MISALIGNED"
    assert last(run(copies=1, weight_address=0x800)) == "load MISALIGNED"
    assert last(run(offset=2)) == "load MISALIGNED"
    for name in ("address", "host_address", "ring_address", "weight_address"):
        assert last(run(copies=int(name != "address"), **{name: 1 << 32})) == "load OUT_OF_REACH"
    assert last(run(address=0xFFFFE000)) == "load OUT_OF_REACH"
    assert last(run(host_address=0xFFFFF000)) == "run OK"


def test_truncated_images(run, image):
    contents = image.tobytes()
    for size in (0, 3, 4, 16, 4 * field("time_limit"), len(contents) // 2, len(contents) - 1):
        assert last(run(contents[:size])) == "load TRUNCATED", size
    assert last(run(contents + b"more")) == "run OK"


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        *(("magic", 1, "NO_IMAGE"), ("version", 1, "OTHER_IMAGE"), ("bytes", 4, "TRUNCATED"), ("bytes", -4, "DAMAGED")),
        *(("bytes", -1, "DAMAGED"), ("sum", 1, "DAMAGED"), ("sum_of_sums", 1, "DAMAGED"), ("batch", 1, "DAMAGED")),
    ],
)
def test_damaged_headers(run, image, name, change, status):
    damaged = image.copy()
    damaged[field(name)] = int(image[field(name)]) + change
    assert last(run(damaged)) == f"load {status}"


def test_damaged_words(run, image):
    """Any changed word is found, and two that are exchanged."""
    generator = np.random.default_rng(1)
    for place in generator.integers(CHECKED, len(image), 20):
        damaged = image.copy()
        damaged[place] ^= np.uint32(1 << int(generator.integers(32)))
        assert last(run(damaged)) == "load DAMAGED", place
    damaged = image.copy()
    damaged[[-1, -2]] = 5, 6
    signed(damaged)
    damaged[[-1, -2]] = 6, 5
    assert last(run(damaged)) == "load DAMAGED"


LIES = ["batch", "inputs", "outputs", "tensors", "constants", "constant_place", "constant_bytes", "ring", "ring_bytes"]
LIES += ["instructions", "scrub_instructions", "weights", "weight_bytes", "host_bytes"]


def test_wrong_sizes(run, image):
    """An image whose checksum is right, but not a size or a place, makes the driver access nothing outside of it."""
    generator = np.random.default_rng(2)
    seen = set()
    for place in [field(name) for name in LIES] + [field("time_limit") + 1 + n for n in range(2 * len(TENSOR))]:
        changed = image.copy()
        changed[place] = generator.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF])
        seen.add(last(run(signed(changed))))
    assert "load DAMAGED" in seen
    assert seen <= {"load DAMAGED", "load MISALIGNED", "load TOO_SMALL", "load OUT_OF_REACH", "run OK"}


def test_scrub(run):
    assert last(run(scrub=1)) == "scrub OK"
    assert last(run(scrub=1, scrubbing=8)) == "scrub STUCK"


def test_scrub_by_a_program(run):
    config = openmxu.Config(size=4, activation_lanes=1, profile="lite", weight_queue_depth=1)
    program = openmxu.compile(DIGITS_MODEL, config, batch=1, effort=0)
    rings = run(program_image(program), scrub=1)
    starts = [line.split()[2:5] for line in rings if line.startswith("start")]
    lengths = [(len(part) + 1) * WORD_BYTES for part in (program.instructions, scrub_program(config))]
    assert [int(size, 0) for _, size, _ in starts] == lengths
    assert int(starts[1][0], 0) - int(starts[0][0], 0) == lengths[0]
    assert rings[-2:] == ["clear counters", "scrub OK"]
