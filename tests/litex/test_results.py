"""What the firmware of the LiteX system prints, and what is in its DRAM; neither needs LiteX."""

import importlib
import sys

import numpy as np
import pytest

import openmxu
from openmxu.embedded import program_image
from openmxu.models import DIGITS_MODEL, digits_test_split
from scripts.litex.contents import Network, memory_contents
from scripts.litex.results import ResultError, read_results

LINES = (
    "network digits 1 2",
    "image 0 1 7b7d7b7b7b7b7b7b7b7b",
    "image 1 0 7c7b7b7b7b7b7b7b7b79",
    "cycles digits runs=2 core=10",
)


@pytest.fixture(scope="module")
def program():
    config = openmxu.Config.preset("tiny", host_data_bytes=4, weight_data_bytes=4)
    return openmxu.compile(DIGITS_MODEL, config, batch=2, effort=0)


@pytest.fixture(scope="module")
def output(program):
    (segment,) = program.device_segments
    return segment.outputs[0]


def test_results(output):
    measured = read_results(LINES, {"digits": output})["digits"]
    assert measured.classes.tolist() == [1, 0]
    assert measured.outputs.dtype == np.float32
    integers = np.zeros((2, 10), np.float32)
    integers[0, 1], integers[1, 0], integers[1, 9] = 2, 1, -2
    np.testing.assert_array_equal(measured.outputs, integers * np.float32(output.scale[0]))
    assert measured.cycles == {"runs": 2, "core": 10}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:3], "has not finished digits"),
        ((LINES[0], *LINES[2:]), "1 results for 2 images"),
        (("failed run 2 5 17",), "the firmware failed: run 2 5 17"),
        (("trap?",), "printed 'trap\\?'"),
        ((LINES[0], "image 0 1 7b7d"), "printed 'image 0 1 7b7d'"),
        ((LINES[0], LINES[1].replace("d", "g")), "printed 'image 0 1 7b7g"),
        (("network digits 1 x",), "printed 'network digits 1 x'"),
    ],
)
def test_results_that_are_none(output, lines, message):
    with pytest.raises(ResultError, match=message):
        read_results(lines, {"digits": output})


def test_memory_contents(program):
    images = digits_test_split()[0][:3]
    memory = memory_contents([Network("digits", program, images)], 1 << 20)
    magic, count = memory[:8].view("<u4")
    assert (magic.tobytes(), count) == (b"MTBL", 1)
    assert memory[8:24].tobytes().rstrip(b"\0") == b"digits"
    place, size, host, host_size, first, image_size, images_there = memory[24:52].view("<u4").tolist()
    assert memory[place : place + size].tobytes() == program_image(program)
    assert host >= place + size
    assert host_size >= program.host_bytes
    assert first >= host + 2 * host_size
    assert (image_size, images_there) == (64, 3)
    (tensor,) = program.device_segments[0].inputs
    stored = memory[first : first + 3 * image_size].view(tensor.stored).reshape(3, 64)
    np.testing.assert_array_equal(stored, tensor.to_integers(images))
    assert {place % 4096, host % 4096, host_size % 4096, first % 4096} == {0}


def test_memory_that_is_too_small(program):
    with pytest.raises(ValueError, match="bytes of DRAM, and there are 4096"):
        memory_contents([Network("digits", program, digits_test_split()[0][:1])], 4096)


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "openmxu.litex", raising=False)
    with pytest.raises(ImportError, match=r"migen is not installed: pip install 'openmxu\[litex\]'"):
        importlib.import_module("openmxu.litex")
