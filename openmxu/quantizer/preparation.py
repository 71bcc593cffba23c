"""Float models made ready for the quantizer: checked, optimized, and without batch normalization on the device."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, version_converter

from openmxu.compiler.errors import ModelError
from openmxu.compiler.onnx.model_file import check_model, first_line, load_model, opset_of
from openmxu.compiler.operators.sequences import batch_axes
from openmxu.quantizer.branches import hand_over, own_constants
from openmxu.quantizer.calibration import has_no_batch
from openmxu.quantizer.directions import split_directions
from openmxu.quantizer.linear_models import replace_linear_models
from openmxu.quantizer.normalization import replace_normalizations
from openmxu.quantizer.zero_states import drop_zero_states
from openmxu.segments.bodies import bodies_of, readers_of

__all__ = ["host_nodes", "prepare"]

_OPSET = 17
"""Opset that older models are converted to: scales for each channel need 13, and most tools write 17."""

_LEAST_OPSET = 13

_LAST = frozenset({"Softmax", "LogSoftmax", "ArgMax", "TopK"})
"""Operators that stay in float32 on the host if no other operators follow."""

_QUANTIZED = frozenset({"QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul"})


def prepare(
    float_model: str | os.PathLike[str] | bytes | onnx.ModelProto, data: NDArray[Any] | Mapping[str, NDArray[Any]]
) -> onnx.ModelProto:
    """A copy of a float model as the quantizer needs it.

    Dimensions of inputs that the model leaves open become those of the calibration data ``data``, the batch excepted.

    Raises
    ------
    ModelError
        The model is damaged or invalid, quantized already, or ONNX Runtime cannot load it.
    OSError
        The file cannot be read.
    """
    model = _checked(load_model(float_model))
    _close_dimensions(model.graph, data)
    replace_linear_models(model.graph)
    model = _current(model)
    own_constants(model.graph)
    drop_zero_states(model.graph)
    model = _optimized(model)
    _flatten_biases(model.graph)
    _separate_biases(model.graph)
    replace_normalizations(model.graph)
    split_directions(model.graph)
    hand_over(model.graph)
    _name_nodes(model.graph)
    return model


def host_nodes(graph: onnx.GraphProto) -> list[str]:
    """Names of the nodes that stay in float32: normalization of inputs, and classification of outputs."""
    inputs = {item.name for item in graph.input}
    names = [node.name for node in graph.node if node.op_type == "BatchNormalization" and node.input[0] in inputs]
    readers = readers_of(graph.node)
    for node in reversed(graph.node):
        following = [graph.node[number].name for name in node.output for number in readers.get(name, ())]
        if node.op_type in _LAST and all(name in names for name in following):
            names.append(node.name)
    return names


def _checked(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model that is valid and all float.

    Raises
    ------
    ModelError
        The model is damaged, invalid or not all float.
    """
    check_model(model)
    for node in model.graph.node:
        if node.op_type in _QUANTIZED:
            raise ModelError(f"node {node.name or node.output[0]!r} ({node.op_type}): the model is quantized already")
    has_bodies = any(bodies_of(node) for node in model.graph.node)
    try:
        # ONNX takes the shapes that a body declares more seriously than ONNX Runtime, which will look at them anyway.
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=not has_bodies)
    except onnx.shape_inference.InferenceError as error:
        raise ModelError(f"the model's types or shapes contradict each other: {first_line(error)}") from None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _close_dimensions(graph: onnx.GraphProto, data: NDArray[Any] | Mapping[str, NDArray[Any]]) -> None:
    """Set open dimensions of inputs; whether the data fits otherwise is checked later.

    The batch is set as well where the data of different inputs has different ones: such a model takes one set of
    arrays.
    """
    constants, axes = {item.name for item in graph.initializer}, batch_axes(graph.node)
    inputs = [item for item in graph.input if item.name not in constants]
    arrays = data if isinstance(data, Mapping) else {item.name: data for item in inputs[:1]}
    is_whole = has_no_batch(inputs, arrays, axes)
    for item in inputs:
        dims, lengths = item.type.tensor_type.shape.dim, np.shape(arrays.get(item.name, ()))
        if len(lengths) != len(dims):
            continue
        for index, (dim, length) in enumerate(zip(dims, lengths, strict=True)):
            if (is_whole or index != axes.get(item.name, 0)) and dim.dim_value < 1 and length > 0:
                dim.dim_value = length


def _current(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset whose operators support scales for each channel."""
    version = opset_of(model)
    if version >= _LEAST_OPSET:
        return model
    try:
        return version_converter.convert_version(model, _OPSET)
    # The converter passes on all exceptions of its C++ code.
    except Exception as error:
        raise ModelError(f"the model's opset {version} cannot be converted to {_OPSET}: {first_line(error)}") from None


def _optimized(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after ONNX Runtime's basic optimizations, with the shapes of its tensors."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(path)
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        # ONNX Runtime's exceptions have no common base class but Exception.
        except Exception as error:
            raise ModelError(f"ONNX Runtime cannot run the model: {first_line(error)}") from None
        optimized = onnx.load(path)
    used = {node.domain for node in optimized.graph.node} | {""}
    versions = {entry.domain: entry.version for entry in optimized.opset_import if entry.domain in used}
    del optimized.opset_import[:]
    optimized.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())
    return onnx.shape_inference.infer_shapes(optimized)


def _flatten_biases(graph: onnx.GraphProto) -> None:
    """Give every Gemm a vector as bias, since ONNX Runtime's quantizer takes no other constant."""
    constants = {item.name: item for item in graph.initializer}
    for node in graph.node:
        if node.op_type != "Gemm" or len(node.input) < 3 or not {node.input[1], node.input[2]} <= constants.keys():
            continue
        bias = numpy_helper.to_array(constants[node.input[2]])
        transposed = any(item.name == "transB" and item.i for item in node.attribute)
        outputs = constants[node.input[1]].dims[0 if transposed else 1]
        if bias.shape == (outputs,) or bias.size not in (1, outputs):
            continue
        name = f"{node.output[0]}_bias"
        vector = np.broadcast_to(bias.reshape(-1), outputs).copy()
        graph.initializer.append(numpy_helper.from_array(vector, name))
        node.input[2] = name


def _separate_biases(graph: onnx.GraphProto) -> None:
    """Give every node a bias of its own: a name that ONNX Runtime's quantizer makes up for the second user of one may
    be that of another tensor."""
    constants = {item.name: item for item in graph.initializer}
    names = {name for node in graph.node for name in (*node.input, *node.output)}
    seen: set[str] = set()
    for node in graph.node:
        if (
            len(node.input) < 3
            or node.input[2] not in constants
            or node.op_type not in ("Conv", "ConvTranspose", "Gemm")
        ):
            continue
        name = node.input[2]
        if name in seen:
            own = next(new for number in itertools.count(1) if (new := f"{name} again {number}") not in names)
            names.add(own)
            copy = graph.initializer.add()
            copy.CopyFrom(constants[name])
            copy.name = node.input[2] = own
        seen.add(name)


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a unique name."""
    names = {node.name for node in graph.node}
    seen: set[str] = set()
    for node in graph.node:
        name = node.name or node.op_type.lower()
        numbers = itertools.count(1)
        while name in seen or (name != node.name and name in names):
            name = f"{node.name or node.op_type.lower()}_{next(numbers)}"
        node.name = name
        seen.add(name)
