"""The page of a recorded product in headless Chromium: ``make browser``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from openmxu.profiling.array_view import array_page_html
from openmxu.sim.array_recording import ArrayRecording, record_product

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def recording() -> ArrayRecording:
    rng = np.random.default_rng(2)
    return record_product(rng.integers(-9, 10, (4, 8)), rng.integers(-9, 10, (8, 4)), 4)


@pytest.fixture(scope="module")
def page(browser: Browser, recording: ArrayRecording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path: Path = tmp_path_factory.mktemp("page") / "array.html"
    path.write_text(array_page_html(recording), encoding="utf-8")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    yield page
    page.close()
    assert errors == []


def shown(page: Page, kind: str) -> list[int | None]:
    texts = page.locator(f"text.array-view-{kind}").all_text_contents()
    return [int(text.replace("−", "-")) if text else None for text in texts]


def test_keys_step_through_the_cycles(recording: ArrayRecording, page: Page) -> None:
    page.keyboard.press("Home")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".array-view-cycle") == f"cycle 9 of {recording.cycles - 1}"
    is_there = recording.sum_rows[9] >= 0
    expected = [
        int(x) if there else None for x, there in zip(recording.partial_sums[9].flat, is_there.flat, strict=True)
    ]
    assert shown(page, "sum") == expected
    assert any(is_there.flat)


def test_buttons_and_slider(recording: ArrayRecording, page: Page) -> None:
    page.locator(".array-view-slider").fill("3")
    page.click(".array-view-forward")
    page.click(".array-view-forward")
    page.click(".array-view-back")
    assert page.inner_text(".array-view-cycle").startswith("cycle 4 ")
    page.click(".array-view-play")
    page.wait_for_function("document.querySelector('.array-view-slider').value === '5'")
    page.click(".array-view-play")
    assert page.inner_text(".array-view-play") == "▶ play"


def test_the_end_shows_the_product_without_scrolling(recording: ArrayRecording, page: Page) -> None:
    page.keyboard.press("End")
    assert shown(page, "result") == (recording.left @ recording.right).ravel().tolist()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
