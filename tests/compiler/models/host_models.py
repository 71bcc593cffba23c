"""Models whose first and last parts are computed by the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from scripts.random_models import make_model, random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize

TOKENS, WORDS, WIDTH, CLASSES = 5, 30, 6, 4


def constants(random: np.random.Generator) -> dict[str, np.ndarray]:
    """All constants of the models below."""
    return {
        "x_scale": np.float32(0.02),
        "x_zero_point": np.uint8(130),
        "w": random_bytes(random, "int8", (WIDTH, CLASSES)),
        "w_scale": np.float32(0.01),
        "w_zero_point": np.int8(0),
        "h_scale": np.float32(0.05),
        "h_zero_point": np.uint8(110),
        "table": random.normal(size=(WORDS, WIDTH)).astype(np.float32),
        "bytes": random_bytes(random, "uint8", (WORDS, WIDTH)),
        "factor": random.uniform(0.5, 1.5, WIDTH).astype(np.float32),
        "offset": random.normal(size=WIDTH).astype(np.float32),
        "ones": np.float32(1),
        "flat": np.array([-1, TOKENS * CLASSES]),
        "rows": np.array([0, TOKENS, WIDTH]),
        "exact": np.array([3, TOKENS, WIDTH]),
    }


def layer(source: str, target: str) -> list[onnx.NodeProto]:
    """Real ``source`` through QuantizeLinear, MatMul with ``w`` and QuantizeLinear to real ``target``."""
    return [
        quantize(source, "q", "x"),
        dequantize("q", "x"),
        dequantize("w"),
        node("MatMul", "q_real w_real", "sums"),
        quantize("sums", "h", "h"),
        node("DequantizeLinear", "h h_scale h_zero_point", target),
    ]


def host_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, str, tuple[int, ...]]],
    outputs: Sequence[tuple[str, str, tuple[int, ...]]],
    opset: int = 21,
    batch: int | None = None,
) -> onnx.ModelProto:
    """A model with those constants that its nodes use."""
    values = constants(np.random.default_rng(0))
    used = {name for item in nodes for name in item.input}
    model = make_model(nodes, {name: values[name] for name in values if name in used}, inputs, outputs[0], opset)
    for name, dtype, shape in outputs[1:]:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        model.graph.output.append(helper.make_tensor_value_info(name, kind, ["batch", *shape]))
    if batch is not None:
        for item in (*model.graph.input, *model.graph.output):
            item.type.tensor_type.shape.dim[0].dim_value = batch
    return model


def embedding(opset: int = 21) -> onnx.ModelProto:
    """An embedding of tokens, a layer, and the probabilities and the most probable class of each token."""
    nodes = [
        node("Gather", "table tokens", "words"),
        node("Mul", "words factor", "scaled"),
        *layer("scaled", "real"),
        node("Softmax", "real", "y", axis=-1),
        node("ArgMax", "real", "best", axis=-1, keepdims=0),
    ]
    outputs = [("y", "float32", (TOKENS, CLASSES)), ("best", "int64", (TOKENS,)), ("h", "uint8", (TOKENS, CLASSES))]
    return host_model(nodes, [("tokens", "int64", (TOKENS,))], outputs, opset)


def bytes_embedding() -> onnx.ModelProto:
    """An embedding with a quantized table, so that the input of the device is bytes."""
    nodes = [
        node("Gather", "bytes tokens", "q"),
        *layer("none", "real")[1:],
        node("Reshape", "real flat", "f"),
        node("LogSoftmax", "f", "y"),
    ]
    return host_model(nodes, [("tokens", "int32", (TOKENS,))], [("y", "float32", (TOKENS * CLASSES,))])


def preprocessing(batch: int | None = None) -> onnx.ModelProto:
    """Bytes are converted to real numbers, normalized, and quantized; the sums of the layer go through Sigmoid."""
    nodes = [
        node("Cast", "image", "c", to=TensorProto.FLOAT),
        node("Transpose", "c", "t", perm=[0, 2, 1]),
        node("Reshape", f"t {'exact' if batch else 'rows'}", "r"),
        node("Div", "r factor", "d"),
        node("Sub", "d offset", "n"),
        *layer("n", "real")[:4],
        node("Sigmoid", "sums", "y"),
    ]
    inputs, outputs = [("image", "uint8", (WIDTH, TOKENS))], [("y", "float32", (TOKENS, CLASSES))]
    return host_model(nodes, inputs, outputs, batch=batch)


def bypass() -> onnx.ModelProto:
    """The last part uses an input of the model, and a result of the first part."""
    nodes = [
        node("Abs", "x", "a"),
        *layer("a", "real"),
        node("Cast", "mask", "m", to=TensorProto.FLOAT),
        node("Mul", "real m", "p"),
        node("ReduceMax", "a", "top", keepdims=1),
        node("Add", "p top", "y"),
    ]
    nodes[-2].input.append("last")
    nodes.insert(0, node("Constant", "", "last", value_ints=[-1]))
    del nodes[0].input[:]
    inputs = [("x", "float32", (TOKENS, WIDTH)), ("mask", "bool", (TOKENS, 1))]
    return host_model(nodes, inputs, [("y", "float32", (TOKENS, CLASSES))])


def quantized_softmax() -> onnx.ModelProto:
    """A model in the form that quantizers write, with quantized probabilities."""
    nodes = [
        *layer("x", "real"),
        node("Softmax", "real", "s"),
        node("QuantizeLinear", "s w_scale x_zero_point", "p"),
        node("DequantizeLinear", "p w_scale x_zero_point", "y"),
    ]
    return host_model(nodes, [("x", "float32", (TOKENS, WIDTH))], [("y", "float32", (TOKENS, CLASSES))])


MODELS = {
    "embedding": embedding(),
    "embedding of bytes": bytes_embedding(),
    "preprocessing": preprocessing(),
    "fixed batch": preprocessing(3),
    "bypass": bypass(),
    "quantized softmax": quantized_softmax(),
}


def random_inputs(model: onnx.ModelProto, batch: int) -> dict[str, np.ndarray]:
    """Random inputs for one of the models."""
    random = np.random.default_rng(1)
    arrays = {}
    for item in model.graph.input:
        shape = (batch, *(dim.dim_value for dim in item.type.tensor_type.shape.dim[1:]))
        dtype = helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
        if dtype == np.float32:
            arrays[item.name] = random.normal(size=shape).astype(dtype)
        else:
            arrays[item.name] = random.integers(0, 2 if dtype == np.bool_ else WORDS, shape).astype(dtype)
    return arrays
