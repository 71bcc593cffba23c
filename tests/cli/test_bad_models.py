"""Models that cannot be compiled: one line on stderr, exit status 2, and no output file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from scripts.random_models import make_model
from tests.cli.conftest import Command
from tests.compiler.models.graphs import constants, followed, layer, model, node
from tests.compiler.models.images import image_model, parameters

VALUES = constants(np.random.default_rng(0))
IMAGES = parameters(np.random.default_rng(0))


def layers(*middle: onnx.NodeProto, last: str = "sums", **values: np.ndarray) -> onnx.ModelProto:
    """Two layers with ``middle`` between them."""
    return model(followed(layer(*middle, last=last, output="z")), VALUES | values)


def softmax_between_layers() -> onnx.ModelProto:
    return layers(node("Softmax", "sums", "soft"), last="soft")


def operator_of_another_domain() -> onnx.ModelProto:
    made = softmax_between_layers()
    next(item for item in made.graph.node if item.op_type == "Softmax").domain = "custom"
    made.opset_import.add(domain="custom", version=1)
    return made


def open_shape() -> onnx.ModelProto:
    made = layers()
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    return made


def cycle() -> onnx.ModelProto:
    made = layers()
    made.graph.node[2].input[0] = "z"
    return made


def missing_initializer() -> onnx.ModelProto:
    made = layers()
    made.graph.initializer.remove(next(item for item in made.graph.initializer if item.name == "w"))
    return made


def real_model() -> onnx.ModelProto:
    return make_model(
        [node("MatMul", "x w", "y")], {"w": np.ones((4, 5), "f4")}, [("x", "float32", (4,))], ("y", "float32", (5,))
    )


def too_large_for_the_buffer() -> onnx.ModelProto:
    """A model in which one output needs more rows than the unified buffer has."""
    values = IMAGES | {"w": np.ones((10, 1, 100, 100), np.int8)}
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    return image_model([node("QLinearConv", names, "y")], values, shape=(1, 100, 100))


BAD: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "operator": (operator_of_another_domain, "node 'soft' (custom.Softmax): the operator is not supported; "),
    "shape": (open_shape, "input 'x' must have fixed dimensions after the batch, not 'features'; "),
    "cycle": (cycle, "node 'sums' (MatMul) uses 'z', which is made from its own output: the graph has a cycle"),
    "initializer": (missing_initializer, "node 'w_real' (DequantizeLinear) uses 'w', which is no initializer"),
    "real": (real_model, "node 'y' (MatMul): nothing in the model is quantized; openmxu quantize makes"),
    "size": (too_large_for_the_buffer, "node 'y': unified_buffer_rows is 8192, but it needs at least 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_compile(openmxu: Command, tmp_path: Path, name: str) -> None:
    make, message = BAD[name]
    onnx.save(make(), tmp_path / "bad.onnx")
    openmxu("compile", "bad.onnx", "--size", 4, "-o", "bad.mxu").failed(2, f"bad.onnx: {message}")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.onnx"]


def test_existing_program_stays(openmxu: Command, tmp_path: Path) -> None:
    onnx.save(operator_of_another_domain(), tmp_path / "bad.onnx")
    (tmp_path / "bad.mxu").write_bytes(b"precious")
    openmxu("compile", "bad.onnx", "-o", "bad.mxu").failed(2, "node 'soft' (custom.Softmax)")
    assert (tmp_path / "bad.mxu").read_bytes() == b"precious"


def test_run(openmxu: Command, tmp_path: Path) -> None:
    onnx.save(operator_of_another_domain(), tmp_path / "bad.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    openmxu("run", "bad.onnx", "--input", "x.npy", "--output", "y.npy").failed(2, f"bad.onnx: {BAD['operator'][1]}")
    assert not (tmp_path / "y.npy").exists()


def test_strict(openmxu: Command, tmp_path: Path) -> None:
    """A model of which the host would compute a part is refused, as a model and as a program."""
    onnx.save(softmax_between_layers(), tmp_path / "soft.onnx")
    refusal = "soft.onnx: node 'soft' (Softmax): the operator is not supported; "
    openmxu("compile", "soft.onnx", "--strict", "-o", "soft.mxu").failed(2, refusal)
    assert [path.name for path in tmp_path.iterdir()] == ["soft.onnx"]
    openmxu("compile", "soft.onnx", "-o", "soft.mxu")
    refusal = "soft.mxu is compiled already, and the host computes soft (Softmax)"
    openmxu("compile", "soft.mxu", "--strict", "--report").failed(2, refusal)
