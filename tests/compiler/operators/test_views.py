"""Operators that move elements cost nothing if the next layer can read the existing tensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

import openmxu
from openmxu.compiler import import_model, import_network
from openmxu.compiler.ir.permutation import Permutation
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import node
from tests.compiler.models.images import BATCH, CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters

RANDOM = np.random.default_rng(0)
VALUES = parameters(RANDOM) | {
    "first": np.array([1]),
    "third": np.array([3]),
    "last": np.array([-1]),
    "channels": np.array([1]),
    "columns": np.array([3]),
    "halves": np.array([4, 6]),
    "around": np.array([0, 0, 1, 2, 0, 0, 0, 1]),
    "flat": np.array([0, -1]),
    "split": np.array([0, 2, 5, HEIGHT - 2, WIDTH - 2]),
    "joined": np.array([0, 10, HEIGHT - 2, WIDTH - 2]),
    "m": random_bytes(RANDOM, "int8", (10 * (HEIGHT - 2) * (WIDTH - 2), 9)),
    "p": random_bytes(RANDOM, "int8", (10, 9)),
    "v": random_bytes(RANDOM, "int8", (7, 10, 1, 1)),
    "wide": random_bytes(RANDOM, "int8", (7, 20, 1, 1)),
    "s": random_bytes(RANDOM, "int8", (7, 4, 3, 3)),
}
CONFIG = openmxu.Config()


def conv(source: str, output: str, weights: str = "v") -> onnx.NodeProto:
    names = f"{source} h_scale h_zero_point {weights} v_scale v_zero_point y_scale y_zero_point"
    return node("QLinearConv", names, output)


def product(source: str, output: str, weights: str = "m") -> onnx.NodeProto:
    names = f"{source} h_scale h_zero_point {weights} v_scale v_zero_point y_scale y_zero_point"
    return node("QLinearMatMul", names, output)


def model(*nodes: onnx.NodeProto, dimensions: int = 3, outputs: Sequence[str] = ()) -> onnx.ModelProto:
    """A convolution of ``x`` to ``h`` with 10 channels of 7 × 9, followed by ``nodes``."""
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    made = image_model([node("QLinearConv", names, "h"), *nodes], VALUES, dimensions=dimensions)
    for name in outputs:
        item = made.graph.output.add()
        item.CopyFrom(made.graph.output[0])
        item.name = name
    return made


def pad(source: str, output: str, **attributes: object) -> onnx.NodeProto:
    return node("Pad", f"{source} around h_zero_point", output, **attributes)


def halves() -> onnx.NodeProto:
    made = node("Split", "h halves", "a", axis=1)
    made.output.append("c")
    return made


FREE = {
    "there and back": [
        node("Transpose", "h", "a", perm=[0, 2, 3, 1]),
        node("Transpose", "a", "b0", perm=[0, 3, 1, 2]),
        conv("b0", "y"),
    ],
    "reshaped and back": [node("Reshape", "h split", "a"), node("Reshape", "a joined", "b0"), conv("b0", "y")],
    "padding": [pad("h", "a"), conv("a", "y")],
    "rows of pixels": [node("Transpose", "h", "a", perm=[0, 2, 3, 1]), product("a", "y", "p")],
    "turned and flat": [
        node("Transpose", "h", "a", perm=[0, 3, 1, 2]),
        node("Flatten", "a", "f"),
        product("f", "y"),
    ],
}
MOVED = {
    "channels in another order": [
        node("Reshape", "h split", "a"),
        node("Transpose", "a", "t0", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t0 joined", "b0"),
        conv("b0", "y"),
    ],
    "two tensors": [
        node("MaxPool", "h", "r", kernel_shape=[1, 1]),
        node("Concat", "h r", "a", axis=1),
        conv("a", "y", "wide"),
    ],
    "part of the channels": [halves(), conv("a", "y", "s")],
    "part of the plane": [node("Slice", "h first last columns", "a"), conv("a", "y")],
    "padding by edges": [node("Pad", "h around", "a", mode="edge"), conv("a", "y")],
    "planes as rows": [node("Reshape", "h flat", "f"), node("Flatten", "f", "g"), product("g", "y")],
}
DIMENSIONS = {"turned and flat": 1, "planes as rows": 1}


def operations(name: str, nodes: list[onnx.NodeProto]) -> Counter[str]:
    network = import_network(model(*nodes, dimensions=DIMENSIONS.get(name, 3)))
    return Counter(item.kind for item in network.operations)


@pytest.mark.parametrize("name", FREE)
def test_free(name: str) -> None:
    assert operations(name, FREE[name])["permutation"] == 0


@pytest.mark.parametrize("name", [name for name in MOVED if name != "planes as rows"])
def test_moved_once(name: str) -> None:
    assert operations(name, MOVED[name])["permutation"] == 1


@pytest.mark.parametrize("name", FREE | MOVED)
def test_same_as_onnx_runtime(name: str) -> None:
    proto = model(*(FREE | MOVED)[name], dimensions=DIMENSIONS.get(name, 3))
    inputs = random_bytes(np.random.default_rng(1), "uint8", (BATCH, CHANNELS, HEIGHT, WIDTH))
    assert differing(proto, inputs, openmxu.Config.for_size(8), BATCH) == 0


def test_one_permutation_for_two_layers() -> None:
    proto = model(node("Slice", "h first last columns", "a"), conv("a", "y"), conv("a", "z"), outputs=["z"])
    assert Counter(item.kind for item in import_network(proto).operations)["permutation"] == 1


def test_host_moves_inputs_and_outputs() -> None:
    """Movement before the first layer and after the last one is done by the host."""
    names = "t x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("QLinearConv", names, "h"),
        node("Transpose", "h", "y", perm=[0, 2, 3, 1]),
    ]
    proto = image_model(nodes, VALUES, shape=(HEIGHT, WIDTH, CHANNELS))
    segments = import_model(proto).host_segments
    assert [segment.nodes for segment in segments] == [("t (Transpose)",), ("y (Transpose)",)]
    inputs = random_bytes(np.random.default_rng(1), "uint8", (BATCH, HEIGHT, WIDTH, CHANNELS))
    assert differing(proto, inputs, CONFIG) == 0


def test_moved_tensor_that_is_an_output_and_an_input() -> None:
    proto = model(node("Slice", "h first last columns", "a"), conv("a", "y"), outputs=["a"])
    assert sum(isinstance(item, Permutation) for item in import_network(proto).operations) == 1


def test_batch_must_stay_in_front() -> None:
    nodes = [node("Transpose", "h", "a", perm=[1, 0, 2, 3]), conv("a", "y")]
    with pytest.raises(openmxu.UnsupportedOperatorError, match=r"node 'y' \(QLinearConv\): the batch must be"):
        import_model(model(*nodes), strict=True)


def test_too_much_movement_is_an_error() -> None:
    """Nearly every byte of a large tensor moves to another lane of another row."""
    values = VALUES | {"k": np.ones((64, 4, 1, 1), np.int8), "q": np.ones((2, 40, 1, 1), np.int8)}
    names = "x x_scale x_zero_point k v_scale v_zero_point h_scale h_zero_point"
    nodes = [node("QLinearConv", names, "h"), node("Transpose", "h", "a", perm=[0, 3, 2, 1]), conv("a", "y", "q")]
    with pytest.raises(openmxu.CapacityError, match=r"node 'a': it takes more than 32,768 instructions to move"):
        openmxu.compile(image_model(nodes, values, shape=(4, 40, 40)), CONFIG, strict=True)
