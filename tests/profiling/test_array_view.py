"""The page and the animated picture of a recorded product show what the recording holds."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from openmxu.profiling.array_animation import array_animation
from openmxu.profiling.array_drawing import Drawing
from openmxu.profiling.array_view import array_page_html, array_view_html
from openmxu.sim.array_recording import ArrayRecording, record_product

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recording() -> ArrayRecording:
    """Two tiles in K and two blocks of columns, the second of which is not full."""
    rng = np.random.default_rng(2)
    return record_product(rng.integers(-9, 10, (4, 8)), rng.integers(-9, 10, (8, 5)), 4)


def numbers(texts: list[str]) -> list[int]:
    return [int(text.replace("−", "-")) for text in texts]


def sums(recording: ArrayRecording) -> list[int]:
    """The product in the order of the drawing: block by block."""
    size = recording.size
    blocks = range(0, recording.product.shape[1], size)
    return [number for block in blocks for number in recording.product[:, block : block + size].ravel().tolist()]


def test_drawing_shows_the_registers_of_each_cycle(recording: ArrayRecording) -> None:
    drawing = Drawing(recording)
    elements = drawing.slots[: 4 * recording.size**2]
    shown = {"weight": recording.weights, "activation": recording.activations, "sum": recording.partial_sums}
    for kind, values in shown.items():
        slots = [slot for slot in elements if slot.kind == kind]
        for (row, column), slot in zip(np.ndindex(values.shape[1:]), slots, strict=True):
            assert slot.runs
            for run in slot.runs:
                assert set(values[run.start : run.stop, row, column].tolist()) == set(numbers([run.text]))


def test_skew_registers_show_what_reaches_the_edge(recording: ArrayRecording) -> None:
    """What is in a register is in the next one a cycle later; that of the edge has every row or weight in turn."""
    registers = [slot for slot in Drawing(recording).slots[4 * recording.size**2 :] if slot.kind != "result"]
    assert len(registers) == recording.size * (recording.size + 1)
    at_edge = next(slot for slot in registers if slot.kind == "activation")
    tiles, first = range(len(recording.tiles)), recording.left[:, [0, 4]].T
    assert numbers([run.text for run in at_edge.runs]) == [int(x) for tile in tiles for x in first[tile % 2]]
    weights = next(slot for slot in registers if slot.kind == "next")
    assert numbers([run.text for run in weights.runs]) == [
        int(weight) for tile in recording.tiles for weight in tile[::-1, 0]
    ]


def test_drawing_ends_with_the_product(recording: ArrayRecording) -> None:
    drawing = Drawing(recording)
    last = [slot.runs[-1] for slot in drawing.slots if slot.kind == "result"]
    assert {run.stop for run in last} == {drawing.cycles}
    assert numbers([run.text for run in last]) == sums(recording)


def test_captions_follow_the_rows(recording: ArrayRecording) -> None:
    captions = Drawing(recording).captions
    assert captions[0] == "a tile is being loaded; no sums leave"
    assert captions[-1] == "all rows have entered; no sums leave"
    assert any(caption.startswith("row 3 enters for tile 1; sums of row") for caption in captions)


def test_page_needs_nothing_from_elsewhere(recording: ArrayRecording) -> None:
    page = array_page_html(recording)
    assert not re.search(r"https?:|//|\bsrc=|\bhref=|@import|url\(", page)
    assert array_view_html(recording) in page


def test_fragment_names_are_its_own(recording: ArrayRecording) -> None:
    fragment = array_view_html(recording)
    names = {name for names in re.findall(r'class="([^"]*)"', fragment) for name in names.split()}
    assert names
    assert all(name.startswith("array-view") for name in names)
    (style,) = re.findall(r"<style>(.*?)</style>", fragment, re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", style)
    assert all(".array-view" in part or part.strip().startswith("@media") for part in selectors)


def test_fragment_holds_the_numbers(recording: ArrayRecording) -> None:
    fragment = array_view_html(recording)
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', fragment)
    data = json.loads(text)
    assert data["cycles"] == len(data["captions"]) == recording.cycles
    results = [slot["runs"][-1][2] for slot in data["slots"][-recording.product.size :]]
    assert numbers(results) == sums(recording)


def test_animation_ends_with_the_product(recording: ArrayRecording) -> None:
    root = ElementTree.fromstring(array_animation(recording))
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "result"]
    last = [text.text or "" for group in groups for text in group if "last" in (text.get("class") or "").split()]
    assert numbers(last) == sums(recording)
    assert not list(root.iter(f"{SVG}script"))


def test_animation_has_every_class_that_it_uses(recording: ArrayRecording) -> None:
    text = array_animation(recording)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    used = {name for names in re.findall(r'class="([^"]*)"', text) for name in names.split()}
    used -= {"middle", "activation", "next-box", "result-box"}
    assert {name for name in used if f".{name}" not in style} == set()
