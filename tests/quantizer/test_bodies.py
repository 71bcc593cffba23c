"""Networks with If and Loop: the bodies are the host's, and read tensors and constants from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import openmxu
from openmxu import InputError
from openmxu.compiler import UnsupportedOperatorError
from openmxu.compiler.onnx import host_graph
from scripts.random_models import reference
from tests.quantizer.float_models import FloatModel

CONFIG = openmxu.Config.for_size(8)
INPUTS, OUTPUTS = 20, 6
WEIGHTS = OUTPUTS * OUTPUTS


def undeclared(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def body(name: str, nodes: Sequence[onnx.NodeProto], result: str) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, [], [undeclared(result)])


def choosing() -> FloatModel:
    """A second layer that only positive sums get, within a body: it reads weights and results of the graph around it,
    also through another body."""
    model = FloatModel((INPUTS,)).dense(INPUTS, OUTPUTS).add("Relu")
    hidden = model.last
    total = model.add("ReduceSum", keepdims=0).last
    positive = model.add("Greater", model.constant(np.array(4.0))).last
    weights = model.constant(model.random.normal(size=(OUTPUTS, OUTPUTS)))
    offsets = model.constant(model.random.normal(size=OUTPUTS))
    inner = body("inner", [helper.make_node("Add", [hidden, offsets], ["moved"])], "moved")
    other = body("other", [helper.make_node("Neg", [hidden], ["negative"])], "negative")
    nodes = [
        helper.make_node("If", [positive], ["chosen"], then_branch=inner, else_branch=other),
        helper.make_node("Gemm", ["chosen", weights], ["product"]),
        helper.make_node("Add", ["product", total], ["result"]),
    ]
    same = body("same", [helper.make_node("Identity", [hidden], ["unchanged"])], "unchanged")
    return model.add("If", source=positive, then_branch=body("outer", nodes, "result"), else_branch=same)


def element_model(model: FloatModel) -> onnx.ModelProto:
    """The model with a batch of one: it decides for all elements at once."""
    proto = model.model()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    return proto


def test_bodies_read_from_outside() -> None:
    model = choosing()
    quantized = openmxu.quantize(element_model(model), model.inputs(40))
    program = openmxu.compile(quantized, CONFIG)
    assert [segment.where for segment in openmxu.reporting.segment_reports(program)] == ["device", "host"]
    assert program.host_multiply_adds == program.batch * WEIGHTS
    inputs = model.inputs(30)
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, inputs)[program.outputs[0].name]
    expected = np.concatenate([reference(quantized, inputs[i : i + 1]) for i in range(len(inputs))])
    assert (results == expected).all()
    assert 3 < (expected < 0).any(axis=1).sum() < 27  # both ways are taken


def test_results_are_those_of_the_float_model() -> None:
    """Whatever is done to constants in bodies."""
    model = choosing()
    proto = element_model(model)
    quantized = openmxu.quantize(proto, model.inputs(40))
    inputs = model.inputs(20)
    pairs = [(reference(proto, inputs[i : i + 1]), reference(quantized, inputs[i : i + 1])) for i in range(20)]
    close = [np.abs(wanted - found).max() < 0.4 for wanted, found in pairs]
    assert np.mean(close) >= 0.9  # a sum next to the limit may be on its other side


def looping(times: int) -> onnx.ModelProto:
    """A layer whose sums are doubled so often."""
    model = FloatModel((INPUTS,)).dense(INPUTS, OUTPUTS)
    count, keep = model.constant(np.array(times, np.int64)), "keep"
    inputs = [
        helper.make_tensor_value_info("number", TensorProto.INT64, []),
        helper.make_tensor_value_info("before", TensorProto.BOOL, []),
        undeclared("value"),
    ]
    outputs = [helper.make_tensor_value_info("after", TensorProto.BOOL, []), undeclared("twice")]
    nodes = [
        helper.make_node("Identity", ["before"], ["after"]),
        helper.make_node("Add", ["value", "value"], ["twice"]),
    ]
    loop = helper.make_graph(nodes, "loop", inputs, outputs)
    proto = model.model()
    proto.graph.initializer.append(numpy_helper.from_array(np.array(True), keep))
    proto.graph.node.append(helper.make_node("Loop", [count, keep, model.last], ["y"], name="doubled", body=loop))
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", OUTPUTS]))
    return proto


def test_loop() -> None:
    random = np.random.default_rng(1)
    quantized = openmxu.quantize(looping(3), random.normal(size=(40, INPUTS)).astype(np.float32))
    inputs = random.normal(size=(9, INPUTS)).astype(np.float32)
    program = openmxu.compile(quantized, CONFIG, batch=4)
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, inputs)["y"]
    assert (results == reference(quantized, inputs)).all()
    assert np.abs(results).max() > 8


def test_endless_loop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    quantized = openmxu.quantize(looping(3), random.normal(size=(40, INPUTS)).astype(np.float32))
    kinds = (TensorProto.INT64, [])
    count = next(item for item in quantized.graph.initializer if (item.data_type, item.dims) == kinds)
    count.CopyFrom(numpy_helper.from_array(np.array(1 << 62), count.name))
    monkeypatch.setattr(host_graph, "_MOST_SECONDS", 0.2)
    with pytest.raises(UnsupportedOperatorError, match=r"'doubled' \(Loop\): .* the host cannot compute it either"):
        openmxu.compile(quantized, CONFIG)


def counted(*axes: int) -> onnx.ModelProto:
    """Where the results of a layer are positive: as many places as there happen to be."""
    model = FloatModel((INPUTS,), batch=1).dense(INPUTS, OUTPUTS).add("Relu").add("NonZero")
    return model.add("Cast", to=TensorProto.FLOAT).add("Unsqueeze", model.constant(np.array(axes, np.int64))).model()


def compiled(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, openmxu.Program]:
    quantized = openmxu.quantize(proto, np.random.default_rng(2).normal(size=(40, INPUTS)).astype(np.float32))
    return quantized, openmxu.compile(quantized, CONFIG)


def test_shapes_that_depend_on_the_data() -> None:
    quantized, program = compiled(counted(1))
    random, lengths = np.random.default_rng(3), set()
    with openmxu.open_device("interpreter", CONFIG) as device:
        for _ in range(10):
            x = random.normal(size=(1, INPUTS)).astype(np.float32)
            found, wanted = program.run(device, x)[program.outputs[0].name], reference(quantized, x)
            assert np.array_equal(found, wanted)
            lengths.add(found.shape[-1])
    assert len(lengths) > 2


def test_batch_elements_of_different_shapes() -> None:
    _, program = compiled(counted(0))
    inputs = np.random.default_rng(3).normal(size=(10, INPUTS)).astype(np.float32)
    with (
        openmxu.open_device("interpreter", CONFIG) as device,
        pytest.raises(InputError, match=r"of another shape for each batch element.*give one element at a time"),
    ):
        program.run(device, inputs)
