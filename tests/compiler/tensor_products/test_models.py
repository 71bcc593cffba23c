"""MatMul of two tensors of a graph: ONNX Runtime's integers, wherever their matrices lie."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import openmxu
from openmxu.compiler.errors import CapacityError, UnsupportedOperatorError
from openmxu.exact_session import exact_session
from openmxu.segments.device_segment import DeviceSegment
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import node
from tests.compiler.tensor_products.models import make, qlinear_product

CONFIG = openmxu.Config.for_size(8, profile="full")
BATCH = 3
_QUANTIZATION = {
    "x_scale": np.float32(0.02),
    "x_zero_point": np.uint8(120),
    "s_scale": np.float32(0.06),
    "s_zero_point": np.uint8(131),
}


def same(model: onnx.ModelProto, random: np.random.Generator, config: openmxu.Config = CONFIG) -> openmxu.Program:
    """Check that a program has the integers of ONNX Runtime, for random inputs."""
    session = exact_session(model.SerializeToString())
    program = openmxu.compile(model, config, batch=BATCH)
    values = {spec.name: random_bytes(random, spec.dtype, (BATCH, *spec.shape)) for spec in program.inputs}
    with openmxu.open_device("interpreter", config) as device:
        results = program.run(device, values)["y"]
    (expected,) = session.run(None, values)
    assert np.array_equal(results, expected)
    return program


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 16), (16, 24)),
        ((17, 17), (17, 8)),
        ((2, 5, 16), (2, 16, 9)),
        ((2, 3, 6, 8), (2, 3, 8, 11)),
        ((2, 5, 16), (1, 16, 9)),
        ((1, 5, 16), (3, 16, 9)),
    ],
)
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_qlinear_matmul(left: tuple[int, ...], right: tuple[int, ...], types: tuple[str, str]) -> None:
    random = np.random.default_rng(len(left) + left[-1])
    program = same(qlinear_product(left, right, types, random), random)
    assert program.device_share == 1
    assert [layer.kind for layer in program.layers if layer.multiply_adds] == ["tensor product"]


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_heads_are_multiplied_where_they_lie(heads: int) -> None:
    """Scores of attention: Reshape and Transpose move nothing, and what has a row for each token is transposed."""
    tokens, channels = 9, 32
    width = channels // heads
    nodes = [node("DequantizeLinear", f"{name} x_scale x_zero_point", f"{name}_real") for name in ("a", "b")]
    for name, order in (("a", [0, 2, 1, 3]), ("b", [0, 2, 3, 1])):
        nodes.append(node("Reshape", f"{name}_real split", f"{name}_split"))
        nodes.append(node("Transpose", f"{name}_split", f"{name}_heads", perm=order))
    nodes += [node("MatMul", "a_heads b_heads", "sums"), node("QuantizeLinear", "sums s_scale s_zero_point", "y")]
    # Inputs are the host's to put in order; so they are limited first.
    limited = [node("Clip", f"{name}_given low high", name) for name in ("a", "b")]
    shape = ("uint8", (tokens, channels))
    model = make(
        [*limited, *nodes],
        {"a_given": shape, "b_given": shape},
        {"y": ("uint8", (heads, tokens, tokens))},
        split=np.array([0, tokens, heads, width]),
        low=np.uint8(3),
        high=np.uint8(250),
        **_QUANTIZATION,
    )
    program = same(model, np.random.default_rng(heads))
    assert program.device_share == 1
    assert [layer.kind for layer in program.layers] == ["lookup", "lookup", "tensor product"]


def test_heads_are_written_side_by_side() -> None:
    """What follows a product puts its matrices into channels: the product writes them there."""
    heads, tokens, width = 4, 9, 8
    nodes = [
        node("DequantizeLinear", "a x_scale x_zero_point", "a_real"),
        node("DequantizeLinear", "b x_scale x_zero_point", "b_real"),
        node("MatMul", "a_real b_real", "sums"),
        node("QuantizeLinear", "sums s_scale s_zero_point", "s"),
        node("DequantizeLinear", "s s_scale s_zero_point", "s_real"),
        node("Transpose", "s_real", "turned", perm=[0, 2, 1, 3]),
        node("Reshape", "turned merge", "merged"),
        node("DequantizeLinear", "w w_scale w_zero_point", "w_real"),
        node("MatMul", "merged w_real", "t"),
        node("QuantizeLinear", "t t_scale x_zero_point", "y"),
    ]
    random = np.random.default_rng(6)
    model = make(
        nodes,
        {"a": ("uint8", (heads, tokens, tokens)), "b": ("uint8", (heads, tokens, width))},
        {"y": ("uint8", (tokens, 20))},
        merge=np.array([0, tokens, heads * width]),
        w=random_bytes(random, "int8", (heads * width, 20)),
        w_scale=np.float32(0.01),
        w_zero_point=np.int8(0),
        t_scale=np.float32(0.3),
        **_QUANTIZATION,
    )
    program = same(model, random)
    assert [layer.kind for layer in program.layers] == ["tensor product", "product"]
    assert program.layers[0].name.startswith("sums+")


def test_a_batch_that_meets_another_dimension_is_refused() -> None:
    model = qlinear_product((3, 5, 16), (16, 9), ("uint8", "int8"), np.random.default_rng(0))
    with pytest.raises(UnsupportedOperatorError, match="with as many dimensions as each other"):
        openmxu.compile(model, CONFIG)


def test_int32_sums() -> None:
    nodes = [helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"], name="product")]
    given = {"a": ("uint8", (2, 7, 16)), "b": ("int8", (2, 16, 10))}
    made = {"y": ("int32", (2, 7, 10))}
    same(make(nodes, given, made, za=np.uint8(9), zb=np.int8(-3)), np.random.default_rng(0))


@pytest.mark.parametrize("config", [CONFIG.replace(profile="standard"), CONFIG.replace(unified_buffer_rows=128)])
def test_what_the_core_cannot_do_is_the_hosts(config: openmxu.Config) -> None:
    nodes = [
        node("QLinearMatMul", "a x_scale x_zero_point w w_scale w_zero_point x_scale x_zero_point", "h"),
        node("QLinearMatMul", "h x_scale x_zero_point b x_scale x_zero_point s_scale s_zero_point", "y"),
    ]
    random = np.random.default_rng(3)
    model = make(
        nodes,
        {"a": ("uint8", (60, 16)), "b": ("uint8", (16, 50))},
        {"y": ("uint8", (60, 50))},
        w=random_bytes(random, "int8", (16, 16)),
        w_scale=np.float32(0.01),
        w_zero_point=np.int8(0),
        **_QUANTIZATION,
    )
    program = same(model, random, config)
    assert [isinstance(segment, DeviceSegment) for segment in program.segments] == [True, False]
    with pytest.raises(CapacityError, match="node 'y': "):
        openmxu.compile(model, config, strict=True)


def test_a_program_keeps_what_fills_its_inputs(tmp_path) -> None:
    random = np.random.default_rng(8)
    model = qlinear_product((5, 11), (11, 8), ("int8", "int8"), random)
    program = same(model, random)
    program.save(tmp_path / "product.mxu")
    again = openmxu.Program.load(tmp_path / "product.mxu")
    assert again.segments == program.segments
    assert [tensor.fill for tensor in again.segments[0].inputs] != [0, 0]
