"""Models whose arrays have no dimension for the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import openmxu
from openmxu import InputError, Program
from openmxu.compiler import import_model
from openmxu.exact_session import exact_session
from tests.compiler.models.graphs import node
from tests.compiler.models.host_models import host_model, layer

CONFIG = openmxu.Config(size=4, activation_lanes=1)
LENGTH, WIDTH, CLASSES = 5, 6, 4


def pairwise() -> onnx.ModelProto:
    """Every row of an element is compared with every other one, which the batch must not take part in."""
    nodes = [
        *layer("x", "real"),
        node("Reshape", "real rows", "rows_"),
        node("Transpose", "rows_", "turned", perm=[1, 0]),
        node("MatMul", "rows_ turned", "similar"),
        node("Reshape", "similar shape", "y"),
    ]
    model = host_model(nodes, [("x", "float32", (LENGTH, WIDTH))], [("y", "float32", (LENGTH, LENGTH))])
    arrays = {"rows": np.array([-1, CLASSES]), "shape": np.array([-1, LENGTH, LENGTH])}
    del model.graph.initializer[[item.name for item in model.graph.initializer].index("rows")]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model


def different_batches() -> onnx.ModelProto:
    """A layer of three rows, to each of which a row from elsewhere is added, scaled by a single number."""
    nodes = [
        *layer("x", "real"),
        node("Mul", "row gain", "scaled"),
        node("Add", "real scaled", "y"),
    ]
    model = host_model(nodes, [("x", "float32", (WIDTH,))], [("y", "float32", (CLASSES,))], batch=3)
    model.graph.input.append(helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, CLASSES]))
    model.graph.input.append(helper.make_tensor_value_info("gain", TensorProto.FLOAT, []))
    return model


def expected(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = exact_session(model.SerializeToString())
    return dict(zip([item.name for item in model.graph.output], session.run(None, values), strict=True))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_element_after_the_other(tmp_path: Path, count: int) -> None:
    model = pairwise()
    values = np.random.default_rng(1).normal(size=(count, LENGTH, WIDTH)).astype(np.float32)
    openmxu.compile(model, CONFIG).save(tmp_path / "model.mxu")
    program = Program.load(tmp_path / "model.mxu")
    assert program.by_element
    assert [(spec.shape, spec.batch_axis) for spec in program.inputs] == [((LENGTH, WIDTH), 0)]
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = program.run(device, values)["y"]
    assert result.shape == (count, LENGTH, LENGTH)
    for index, element in enumerate(values):
        np.testing.assert_array_equal(result[index], expected(model, {"x": element[np.newaxis]})["y"][0])
    if count:
        evaluated = import_model(model).evaluate({"x": values})["y"]
        np.testing.assert_array_equal(evaluated, result)


def test_inputs_of_different_batches(tmp_path: Path) -> None:
    """A model that takes its arrays as they are: each of one shape, one of them a single number."""
    model, random = different_batches(), np.random.default_rng(1)
    values = {"x": random.normal(size=(3, WIDTH)), "row": random.normal(size=(1, CLASSES)), "gain": np.array(0.3)}
    values = {name: np.asarray(array, np.float32) for name, array in values.items()}
    openmxu.compile(model, CONFIG).save(tmp_path / "model.mxu")
    program = Program.load(tmp_path / "model.mxu")
    assert (program.batch, program.by_element, program.multiply_adds) == (1, False, 3 * WIDTH * CLASSES)
    with openmxu.open_device("interpreter", CONFIG) as device:
        np.testing.assert_array_equal(program.run(device, values)["y"], expected(model, values)["y"])
        with pytest.raises(
            InputError, match=r"input 'x' must be float32 of shape \(3, 6\), not float32 of shape \(2, 6\)"
        ):
            program.run(device, values | {"x": values["x"][:2]})


def test_recurrent_node_behind_frames() -> None:
    """Frames are a batch to the first layer, and time to a cell that has a batch of one."""
    length, units = 5, 6
    random = np.random.default_rng(4)
    arrays = {
        "W": random.normal(size=(1, 3 * units, CLASSES)).astype(np.float32),
        "R": random.normal(size=(1, 3 * units, units)).astype(np.float32) / 3,
        "D": random.normal(size=(WIDTH, CLASSES)).astype(np.float32),
        "one": np.array([1]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "D"], ["d"], name="dense"),
        helper.make_node("Unsqueeze", ["d", "one"], ["u"], name="time"),
        helper.make_node("GRU", ["u", "W", "R", "", "", "state"], ["", "next"], name="cell", hidden_size=units),
    ]
    shapes = {"x": ["frames", WIDTH], "state": [1, 1, units]}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(
        nodes,
        "frames",
        ports,
        [helper.make_tensor_value_info("next", TensorProto.FLOAT, [1, 1, units])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = {"x": random.normal(size=(length, WIDTH)), "state": np.zeros((1, 1, units))}
    values = {name: array.astype(np.float32) for name, array in values.items()}
    program = openmxu.compile(openmxu.quantize(model, values), CONFIG)
    assert program.device_share == 1
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = program.run(device, values)["next"]
    assert np.abs(result - expected(model, values)["next"]).max() < 0.05
