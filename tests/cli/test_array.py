"""``openmxu array``."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest


def test_page_is_written(openmxu, tmp_path):
    result = openmxu("array", "-o", "array.html", 3, 4, 2, "--size", 2)
    assert (result.status, result.stderr) == (0, "")
    for row in ("3 × 4 by 4 × 2 on an array of 2 × 2", "0 of 6", "array.html, a page"):
        assert row in result.stdout
    page = (tmp_path / "array.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "3 × 4 by 4 × 2" in page


def test_standard_output_is_the_page_alone(openmxu):
    result = openmxu("array", "-o", "-", 1, 1, 1, "--size", 2)
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.endswith("</html>\n")


def test_picture_is_written(openmxu, tmp_path):
    openmxu("array", "-o", "array.svg", 2, 2, 2, "--size", 2, "--seed", 3)
    assert ElementTree.parse(tmp_path / "array.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--size", 16), "2 × 2, 4 × 4 or 8 × 8 to be shown, not 16 × 16"),
        (("--size", 3), "not 3 × 3"),
        ((129, 4, 4), "too large to be shown: 1 tiles × 129 rows are more than 128"),
        ((0,), "greater than or equal to 1"),
        (("-o", "missing/array.html"), "there is no directory"),
    ],
)
def test_wrong_usage_is_one_line(openmxu, tmp_path, arguments, part):
    openmxu("array", "-o", "array.html", *arguments).failed(2, part)
    assert not (tmp_path / "array.html").exists()
