"""Tables of real functions with and without ONNX Runtime."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from openmxu import ModelError
from openmxu.compiler.operators.builder import Builder
from openmxu.compiler.operators.functions import evaluate_function
from openmxu.compiler.operators.values import Constant
from tests.compiler.models.graphs import node

VALUES = np.linspace(-8, 8, 256).astype(np.float32)


@pytest.fixture
def builder() -> Builder:
    return Builder({"two": Constant(np.array([[2]], np.float32)), "many": Constant(np.zeros(3, np.float32))}, 21, None)


@pytest.mark.parametrize("installed", [True, False])
def test_nodes_are_chained(builder: Builder, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "s x", "p"), node("Add", "two p", "y")]
    result = evaluate_function(nodes, VALUES, builder)
    assert (result.shape, result.dtype) == (VALUES.shape, np.float32)
    np.testing.assert_allclose(result, VALUES / (1 + np.exp(-VALUES.astype(np.float64))) + 2, rtol=1e-5)


@pytest.mark.parametrize("installed", [True, False])
def test_functions_that_cannot_be_computed(builder: Builder, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match=r"node 'y' \(HardSwish\) cannot be computed: .") as caught:
        evaluate_function([node("HardSwish", "x two", "y")], VALUES, builder)
    assert "\n" not in str(caught.value)
