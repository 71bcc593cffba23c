"""The model that the demo runs: handwritten digits, 8 × 8 pixels, and its test images.

``scripts/train_digits.py`` makes both files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["DIGITS_MODEL", "DIGITS_TEST_SPLIT", "digits_test_split"]

DIGITS_MODEL = Path(__file__).with_name("digits.onnx")
"""Quantized network 64-64-10. Input ``image``: float32 (batch, 64), 0 to 16. Output ``logits``: float32 (batch, 10)."""

DIGITS_TEST_SPLIT = Path(__file__).with_name("digits_test.npz")


def digits_test_split() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The images of the test split, float32 (360, 64) with values from 0 to 16, and their labels, int64 (360,).

    A part of the data set that scikit-learn's ``load_digits`` returns: E. Alpaydin and C. Kaynak, Optical Recognition
    of Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0.
    """
    with np.load(DIGITS_TEST_SPLIT, allow_pickle=False) as archive:
        return archive["images"].astype(np.float32), archive["labels"].astype(np.int64)
