"""docs/array.svg is what the RTL computes now."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from openmxu.profiling.array_animation import array_animation
from scripts.docs import array_picture

ROOT = Path(__file__).resolve().parents[2]


def test_picture_is_up_to_date() -> None:
    recording = array_picture.recording()
    assert np.array_equal(recording.product, recording.left @ recording.right)
    current = array_animation(recording)
    text = (ROOT / "docs" / "array.svg").read_text(encoding="utf-8")
    assert text == current, "run: python -m scripts.docs.array_picture"
    assert len(current.encode()) < 100_000
