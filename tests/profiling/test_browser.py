"""The profile page in headless Chromium: ``make browser``."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import openmxu
from openmxu.arch.isa import Unit
from openmxu.profiling import take_profile
from openmxu.profiling.page import profile_page

pytestmark = pytest.mark.browser

CONFIG = openmxu.Config.for_size(16)
BATCHES = {"cifar10": 2, "vision_transformer": 1}


@pytest.fixture(scope="module", params=list(BATCHES))
def folder(request, tmp_path_factory) -> Path:
    """``index.html`` and ``profile.json`` of a network of examples/ on the simulated RTL."""
    network, batch = importlib.import_module(f"examples.{request.param}.network").NETWORK, BATCHES[request.param]
    # The default search is for programs that run often: this one runs once.
    program = openmxu.compile(network.model(), CONFIG, batch=batch, effort=0)
    with openmxu.open_device("verilator", CONFIG) as device:
        found = take_profile(program, device, network.inputs(batch), model=request.param, device_name="verilator")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "index.html").write_text(profile_page(found), "utf-8")
    (folder / "profile.json").write_text(json.dumps(found.as_dict(), allow_nan=False))
    return folder


@pytest.fixture
def numbers(folder) -> dict[str, Any]:
    return json.loads((folder / "profile.json").read_text())


def opened(browser: Browser, folder: Path, width: int, scheme: str = "light") -> tuple[Page, list[str]]:
    """The page once it is drawn, and what it has requested, errors included."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("websocket", lambda socket: seen.append(socket.url))
    page.goto((folder / "index.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]")
    return page, seen


def test_page_shows_the_numbers_of_the_device(browser, folder, numbers):
    page, seen = opened(browser, folder, 1280)
    assert numbers["difference"] == 0
    assert numbers["counted_cycles"] == numbers["counters"]["cycles"] == numbers["layer_cycles"]
    assert page.inner_text("#cycles") == f"{numbers['counted_cycles']:,}"
    assert page.inner_text("#utilization") == f"{numbers['utilization']:.3f}"
    assert "exactly the device's counter CYCLES" in page.inner_text("#sum")
    rows = page.eval_on_selector_all(
        "#layers tr", "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    shown = [int(row[3].replace(",", "")) for row in rows[1:-1] if row[3]]
    assert shown == [layer["cycles"] for layer in numbers["report"]["layers"]]
    assert sum(shown) == numbers["counted_cycles"]
    bars = page.evaluate("document.getElementById('accounting').data.map(bar => Array.from(bar.x))")
    assert [sum(parts) for parts in zip(*bars, strict=True)] == shown
    points = page.evaluate("Array.from(document.getElementById('roofline').data[1].y)")
    expected = [layer["multiply_adds_per_cycle"] for layer in numbers["roofline"]["layers"]]
    assert points == pytest.approx([rate for rate in expected if rate])
    rows_live = page.evaluate("Math.max(...document.getElementById('occupancy').data[0].y)")
    assert rows_live == numbers["occupancy"]["peak"]
    assert seen == [(folder / "index.html").as_uri()]
    page.close()


def test_timeline_zooms(browser, folder, numbers):
    page, seen = opened(browser, folder, 1280)
    cycles = numbers["timeline"]["cycles"]
    visible = "document.getElementById('timeline').layout.xaxis.range"
    assert page.evaluate(visible) == [0, cycles]
    area = page.evaluate(
        "(() => { const all = document.querySelector('#timeline .nsewdrag'); all.scrollIntoView({block: 'center'});"
        " const {x, y, width, height} = all.getBoundingClientRect(); return {x, y, width, height}; })()"
    )
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + 0.50 * area["width"], middle)
    page.mouse.down()
    page.mouse.move(area["x"] + 0.52 * area["width"], middle, steps=4)
    page.mouse.up()
    page.wait_for_function(f"document.getElementById('occupancy').layout.xaxis.range[0] > {0.4 * cycles}")
    first, last = page.evaluate(visible)
    assert first == pytest.approx(0.50 * cycles, rel=0.02)
    assert last == pytest.approx(0.52 * cycles, rel=0.02)
    # Each instruction of the matrix unit that runs in these cycles is a bar.
    timeline = numbers["timeline"]
    matrix = [
        (begun, text.split()[0])
        for unit, begun, done, text in zip(*(timeline[name] for name in ("unit", "begun", "done", "text")), strict=True)
        if unit == Unit.MATRIX and done >= first and begun <= last
    ]
    find = "document.getElementById('timeline').data.find(lane => lane.name === 'matrix')"
    bars = page.evaluate(f"{find}.hovertext.map((text, number) => [{find}.base[number], text])")
    assert [begun for begun, _ in bars] == [begun for begun, _ in matrix]
    assert all(f"</b> {name} " in text for (_, name), (_, text) in zip(matrix, bars, strict=True))
    page.mouse.dblclick(area["x"] + area["width"] / 2, middle)
    page.wait_for_function(f"document.getElementById('timeline').layout.xaxis.range[1] >= {cycles}")
    assert not [text for text in seen if text.startswith("error")]
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_page_fits_the_window(browser, folder, width, scheme):
    page, seen = opened(browser, folder, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    charts = ("accounting", "roofline", "timeline", "occupancy")
    for chart in charts:
        box = page.evaluate(f"document.getElementById('{chart}').getBoundingClientRect().toJSON()")
        assert box["height"] > 200, chart
        assert 0 <= box["left"] < box["right"] <= width, chart
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(20, 24, 29)") == (scheme == "dark")
    assert len(seen) == 1
    page.close()
