"""``openmxu devices``, ``openmxu simulate-board``, and commands that adopt a board's configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.program import Program
from openmxu.rtl.boards import BOARDS
from openmxu.sim.pseudo_terminal import PseudoTerminal
from tests.boards import simulated_board
from tests.cli.small_models import K, write_dense_model

IMAGES = 4
DIGITS = ("run", DIGITS_MODEL, "--input", "digits.npy", "--output", "y.npy", "--batch", IMAGES)
RUN = ("run", "small.onnx", "--input", "x.npy", "--output", "y.npy")
PROGRAM = """
    Read_Host_Memory  rows=2
    Synchronize       units=31
    Write_Host_Memory rows=2, host=8
    Halt
"""


@pytest.fixture
def small(tmp_path: Path) -> np.ndarray:
    """What ONNX Runtime makes of the input of :data:`RUN`."""
    write_dense_model(tmp_path / "small.onnx")
    inputs = np.random.default_rng(1).integers(0, 256, (IMAGES, K), np.uint8)
    np.save(tmp_path / "x.npy", inputs)
    return reference(tmp_path / "small.onnx", inputs)


def reference(model: Path, inputs: np.ndarray) -> np.ndarray:
    session = exact_session(model)
    return session.run(None, {session.get_inputs()[0].name: inputs})[0]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A simulated Tang Nano 9K."""
    with simulated_board("tang_nano_9k", tmp_path_factory.mktemp("board")) as link:
        yield link


def check_answer(openmxu, link: Path, config: Config) -> None:
    (answer,) = openmxu("devices", "--port", link, "--json").json["ports"]
    assert (answer["port"], answer["answers"], answer["problem"]) == (str(link), True, None)
    assert answer["configuration"] == config.as_dict()
    assert answer["baud"] == 1_000_000
    assert answer["clock"] > 0


def test_a_board_is_listed(openmxu, board):
    check_answer(openmxu, board, BOARDS["tang_nano_9k"].config)
    shown = openmxu("devices", "--port", board)
    assert shown.status == 0
    heading, line = shown.stdout.splitlines()
    assert heading.split() == ["port", "hardware", "array", "profile", "configuration", "clock", "baud"]
    assert f"{board}" in line
    assert "4 × 4  lite     tang_nano_9k: 4,096 rows, 256 accumulators, 2 tiles" in line
    assert "MHz  1,000,000" in line


def test_a_board_needs_no_sizes(openmxu, board, tmp_path, small):
    result = openmxu(*RUN, "--device", f"serial:{board}", "--json").json
    assert (result["device"], result["size"]) == ("serial", 4)
    assert np.array_equal(np.load(tmp_path / "y.npy"), small)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_digits_on_every_board(openmxu, name, tmp_path):
    images = digits_test_split()[0][:IMAGES]
    np.save(tmp_path / "digits.npy", images)
    with simulated_board(name, tmp_path) as link:
        check_answer(openmxu, link, BOARDS[name].config)
        result = openmxu(*DIGITS, "--device", f"serial:{link}", "--json").json
    assert result["size"] == BOARDS[name].config.size
    assert np.array_equal(np.load(tmp_path / "y.npy"), reference(DIGITS_MODEL, images))


def test_options_that_say_what_the_board_has(openmxu, board, tmp_path, small):
    result = openmxu(*RUN, "--device", "serial", "--port", board, "--size", 4, "--profile", "lite", "--json").json
    assert result["size"] == 4
    assert np.array_equal(np.load(tmp_path / "y.npy"), small)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", 8), "has size 4, and --size 8 means 8: leave it out"),
        (("--preset", "icebreaker"), "has unified_buffer_rows 4096, and --preset icebreaker means 16384: leave it"),
        (("--preset", "tiny", "--profile", "lite"), "has unified_buffer_rows 4096, and --preset tiny means 512"),
        (("--bus-bytes", 8), "has host_data_bytes 4, and --bus-bytes 8 means 8"),
        (("--size", 4, "--preset", "icebreaker"), "--size and --preset exclude each other"),
        (("--preset", "gpu"), "unknown preset 'gpu'; known: tiny"),
    ],
)
def test_options_that_contradict_the_board(openmxu, board, small, tmp_path, options, message):
    openmxu(*RUN, "--device", f"serial:{board}", *options).failed(2, message)
    assert not (tmp_path / "y.npy").exists()


def test_programs_for_the_board_and_for_another(openmxu, board, tmp_path, small):
    compiled = ("compile", "small.onnx", "--batch", IMAGES)
    assert openmxu(*compiled, "--device", f"serial:{board}", "--baud", 3_000_000, "-o", "small.mxu").status == 0
    assert Program.load(tmp_path / "small.mxu").config == BOARDS["tang_nano_9k"].config
    run = ("run", "small.mxu", "--input", "x.npy", "--output", "y.npy", "--device", f"serial:{board}")
    assert openmxu(*run).status == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), small)
    assert openmxu(*compiled, "--preset", "icebreaker", "-o", "small.mxu").status == 0
    openmxu(*run).failed(2, "small.mxu is compiled for another configuration", "unified_buffer_rows 4096, not 16384")


def test_bare_instructions(openmxu, board, tmp_path):
    (tmp_path / "copy.s").write_text(PROGRAM)
    np.save(tmp_path / "memory.npy", np.arange(16, dtype=np.uint8))
    run = ("run", "copy.s", "--host-memory", "memory.npy", "--host-memory-output", "left.npy")
    assert openmxu(*run, "--device", f"serial:{board}").status == 0
    assert np.array_equal(np.load(tmp_path / "left.npy"), np.tile(np.arange(8, dtype=np.uint8), 2))


def test_ports_where_nothing_answers(openmxu):
    wire = PseudoTerminal()
    result = openmxu("devices", "--port", wire.name, "--port", "/dev/no-such-port", "--baud", 115200)
    wire.close()
    assert (result.status, result.stderr) == (1, "")
    _, silent, missing = result.stdout.splitlines()
    assert silent.split(maxsplit=1)[0] == wire.name
    assert "no answer to 2 frames at 115200 baud" in silent
    assert "cannot open /dev/no-such-port: No such file or directory" in missing


def test_all_ports_are_listed(openmxu):
    """Whatever ports this machine has."""
    for port in openmxu("devices", "--json").json["ports"]:
        assert port["answers"] or port["problem"]


def test_unknown_boards_and_links_that_cannot_be_made(openmxu, small):
    openmxu("simulate-board", "de10").failed(2, "unknown board 'de10'; known: ulx3s_85f, icebreaker, tang_nano_9k")
    simulate = ("simulate-board", "icebreaker", "--link")
    openmxu(*simulate, "x.npy").failed(2, "cannot make the link x.npy: there is a file of that name")
    openmxu(*simulate, "a/b").failed(2, "cannot make the link a/b: there is no directory")
