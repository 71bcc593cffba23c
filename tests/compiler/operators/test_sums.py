"""Sums of two tensors, for all pairs of bytes, are those of ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled
from openmxu.compiler import evaluate, import_network
from openmxu.compiler.ir.sum_scales import QuantizedSum, sum_scales
from openmxu.segments.graph_runner import GraphRunner
from scripts.random_models import make_model
from tests.compiler.models.graphs import dequantize, node, quantize

PAIRS = [values.astype(np.uint8) for values in np.meshgrid(np.arange(256), np.arange(256), indexing="ij")]


@dataclass(frozen=True)
class Form:
    """How a sum of x and z is written."""

    operator: str
    contributed: bool = False
    has_relu: bool = False


FORMS = {
    "Add": Form("Add"),
    "Sub": Form("Sub"),
    "Add, Relu": Form("Add", has_relu=True),
    "QLinearAdd": Form("QLinearAdd", contributed=True),
}


def sums(form: Form, dtype: str, seed: int) -> tuple[NDArray[np.integer], list[NDArray[np.integer]]]:
    """Ours for all pairs of bytes, and ONNX Runtime's by default and without its optimizer."""
    random = np.random.default_rng(seed)
    scales = np.exp(random.uniform(np.log(0.001), np.log(0.1), 2))
    result_scale = scales.sum() * random.uniform(0.3, 1.2)
    values = dict(zip(("x_scale", "z_scale", "y_scale"), np.float32([*scales, result_scale]), strict=True))
    values |= {f"{name}_zero_point": random.integers(0, 256, (), np.uint8).view(dtype) for name in "xyz"}
    if form.contributed:
        names = " ".join(f"{name} {name}_scale {name}_zero_point" for name in "xz") + " y_scale y_zero_point"
        nodes = [node(form.operator, names, "y", domain="com.microsoft")]
    else:
        nodes = [dequantize("x"), dequantize("z"), node(form.operator, "x_real z_real", "s")]
        if form.has_relu:
            nodes.append(node("Relu", "s", "r"))
        nodes.append(quantize("r" if form.has_relu else "s", "y", "y"))
    ports = [(name, dtype, (256,)) for name in "xz"]
    model = make_model(nodes, values, ports, ("y", dtype, (256,)), 21)
    inputs = dict(zip("xz", (item.view(dtype) for item in PAIRS), strict=True))
    theirs = [GraphRunner(model.SerializeToString(), optimize=optimize).run(inputs)[0] for optimize in (True, False)]
    return evaluate(import_network(model), inputs), theirs


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("form", FORMS)
def test_all_pairs_of_bytes(form: str, dtype: str) -> None:
    for seed in range(20):
        ours, (usual, plain) = sums(FORMS[form], dtype, seed)
        np.testing.assert_array_equal(ours[usual == plain], usual[usual == plain])
        assert ((ours == usual) | (ours == plain)).all()


def test_without_moving_the_scales_some_pairs_differ() -> None:
    random = np.random.default_rng(1)
    before = after = 0
    for _ in range(100):
        scales = np.float32(random.uniform(0.001, 0.1, 2))
        item = QuantizedSum(
            scales=(scales[0], scales[1]),
            zero_points=(128, 128),
            signed=(False, False),
            scale=np.float32(scales.sum() * random.uniform(0.3, 1.2)),
            zero_point=128,
            limits=(0, 255),
            is_fused=False,
        )
        first, second = item.near_ties()
        counts = []
        for factors in (item.factors(), sum_scales(item)):
            left, right = (np.asarray(factor) for factor in factors)
            ours = add_scaled(first - 128, left, second - 128, right, item.zero_point, *item.limits)
            counts.append(int((ours != item.as_written(first, second)).sum()))
        before += counts[0]
        after += counts[1]
    assert after < before / 4
