"""docs/program_file.md names every member of a program file, and the version."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.models import DIGITS_MODEL
from openmxu.program_format import ARRAYS, FORMAT, VERSION
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.host_tensor import HostTensor, Packing
from openmxu.state import State
from tests.cli.small_models import write_dense_model

TEXT = (Path(__file__).parents[2] / "docs" / "program_file.md").read_text()


def part(title: str) -> str:
    """The text from a title, or a name in bold, to the next."""
    return re.split(rf"^(?:## |\*\*){title}", TEXT, flags=re.MULTILINE)[1].split("\n## ")[0].split("\n**")[0]


def rows(text: str) -> set[str]:
    """The names in the first column of a table."""
    columns = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    return {name for column in columns for name in re.findall(r"`(\w+)`", column)}


def names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[dict[str, np.ndarray], dict]:
    """The arrays of a program file, and its header."""
    path = tmp_path_factory.mktemp("program") / "model.mxu"
    openmxu.compile(DIGITS_MODEL, openmxu.Config.for_size(8), batch=8, effort=0).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    return arrays, json.loads(arrays["header"].tobytes())


def test_arrays(saved):
    arrays, _ = saved
    documented = dict(re.findall(r"^\| `(\w+)` \| (u?int\d+) \|", part("Arrays"), re.MULTILINE))
    assert documented == ARRAYS == {name: array.dtype.name for name, array in arrays.items()}


def test_header(saved):
    _, header = saved
    assert rows(part("Header")) == set(header)
    assert f"| `version` | number | {VERSION} |" in TEXT
    assert f"| `format` | string | `{FORMAT}` |" in TEXT


def test_segments(saved, tmp_path):
    _, header = saved
    assert rows(part(r"A segment of the device\*\*")) == set(header["segments"][0])
    from openmxu.program_format import _segment_header
    from openmxu.segments.host_segment import HostSegment

    write_dense_model(tmp_path / "model.onnx")
    segment = HostSegment((tmp_path / "model.onnx").read_bytes(), (), (), None, 0)
    assert rows(part(r"A segment of the host\*\*")) == set(_segment_header(segment))


@pytest.mark.parametrize(
    ("title", "kind"),
    [("An array", ArraySpec), ("A layer", openmxu.program.Layer), ("A packing", Packing), ("A state", State)],
)
def test_members_in_sentences(title, kind):
    assert names(kind) <= set(re.findall(r"`(\w+)`", part(rf"{title}\*\*")))


def test_tensors():
    assert rows(part(r"A tensor in host memory\*\*")) == names(HostTensor)
