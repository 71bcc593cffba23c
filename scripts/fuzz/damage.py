"""Ways to damage files: of any kind, and of ONNX models in particular."""

from __future__ import annotations

import random
from collections.abc import Callable

import onnx
from onnx import TensorProto, helper

__all__ = ["SURGERIES", "damaged_bytes", "operate"]

_HUGE = (1 << 40, 1 << 31, (1 << 31) - 1, -1, 0, 1 << 20)
_OTHER_OPERATORS = (
    *("Add", "Cast", "Concat", "Conv", "DequantizeLinear", "Flatten", "Gather", "If", "LSTM", "Loop", "MatMul"),
    *("MaxPool", "Nothing", "Pad", "QLinearConv", "QuantizeLinear", "Reshape", "Resize", "Shape", "Softmax", "Split"),
)


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, left out, repeated, or cut off."""
    content = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        place = chance.randrange(max(1, len(content)))
        length = chance.choice((1, 1, 1, 4, 30))
        match chance.randrange(5):
            case 0:
                content[place : place + length] = chance.randbytes(length)
            case 1:
                del content[place : place + length]
            case 2:
                content[place:place] = content[place : place + length]
            case 3:
                content[place : place + 1] = bytes([content[place] ^ 1 << chance.randrange(8)]) if content else b""
            case 4 if chance.random() < 0.2:
                del content[place:]
    return bytes(content)


def operate(model: onnx.ModelProto, chance: random.Random) -> onnx.ModelProto:
    """The model after some operations on its graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        chance.choice(SURGERIES)(copy, chance)
    return copy


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    made = [name for node in graph.node for name in node.output]
    return ["", *made, *(item.name for item in (*graph.input, *graph.initializer, *graph.output))]


def _rewire(model: onnx.ModelProto, chance: random.Random) -> None:
    """A node reads another tensor: perhaps one made later, or by itself."""
    if model.graph.node:
        node = chance.choice(model.graph.node)
        if node.input:
            node.input[chance.randrange(len(node.input))] = chance.choice(_names(model))


def _drop_input(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        node = chance.choice(model.graph.node)
        if node.input:
            del node.input[chance.randrange(len(node.input))]


def _rename_output(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        node = chance.choice(model.graph.node)
        if node.output:
            node.output[chance.randrange(len(node.output))] = chance.choice(_names(model))


def _remove_node(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        del model.graph.node[chance.randrange(len(model.graph.node))]


def _repeat_node(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        model.graph.node.insert(chance.randrange(len(model.graph.node) + 1), chance.choice(model.graph.node))


def _swap_nodes(model: onnx.ModelProto, chance: random.Random) -> None:
    nodes = list(model.graph.node)
    chance.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _change_operator(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        node = chance.choice(model.graph.node)
        node.op_type = chance.choice(_OTHER_OPERATORS)
        if chance.random() < 0.2:
            node.domain = chance.choice(("com.microsoft", "ai.onnx.ml", "custom", "ai.onnx"))


def _change_attribute(model: onnx.ModelProto, chance: random.Random) -> None:
    nodes = [node for node in model.graph.node if node.attribute]
    if nodes:
        attribute = chance.choice(chance.choice(nodes).attribute)
        number = chance.choice((*_HUGE, 1, 2, 3, 7))
        if attribute.ints:
            attribute.ints[chance.randrange(len(attribute.ints))] = number
        elif chance.random() < 0.5:
            attribute.i = number
        else:
            attribute.type = chance.choice((1, 2, 3, 4, 5, 7))


def _add_attribute(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        name = chance.choice(
            ("axis", "strides", "group", "to", "perm", "pads", "kernel_shape", "auto_pad", "direction")
        )
        value: object = chance.choice((-1, 0, 1, 99, [1, 2], [0, 0, 0, 0], [9] * 20, "SAME_UPPER", 0.5))
        chance.choice(model.graph.node).attribute.append(helper.make_attribute(name, value))


def _change_dimensions(model: onnx.ModelProto, chance: random.Random) -> None:
    """An input, an output or a constant says that it is larger or smaller than it is."""
    graph = model.graph
    if graph.initializer and chance.random() < 0.6:
        dims = chance.choice(graph.initializer).dims
        if dims and chance.random() < 0.7:
            dims[chance.randrange(len(dims))] = chance.choice((*_HUGE, 1, 3))
        else:
            dims.append(chance.choice((1, 1 << 40)))
        return
    ports = [*graph.input, *graph.output]
    if ports:
        shape = chance.choice(ports).type.tensor_type.shape
        if shape.dim and chance.random() < 0.7:
            shape.dim[chance.randrange(len(shape.dim))].dim_value = chance.choice((*_HUGE, 1, 3))
        else:
            shape.dim.add(dim_value=chance.choice((1, 5)))


def _change_type(model: onnx.ModelProto, chance: random.Random) -> None:
    graph = model.graph
    kinds = (*range(25), 99)
    if graph.initializer and chance.random() < 0.5:
        chance.choice(graph.initializer).data_type = chance.choice(kinds)
    elif graph.input:
        chance.choice([*graph.input, *graph.output]).type.tensor_type.elem_type = chance.choice(kinds)


def _data_elsewhere(model: onnx.ModelProto, chance: random.Random) -> None:
    """A constant lies in another file, in the folder or outside."""
    if model.graph.initializer:
        tensor = chance.choice(model.graph.initializer)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        place = chance.choice(("/etc/passwd", "../../../etc/passwd", "weights.bin", "", ".", "/dev/zero", "/dev/stdin"))
        tensor.external_data.add(key="location", value=place)
        if chance.random() < 0.3:
            tensor.external_data.add(key="length", value=chance.choice(("-1", "x", str(1 << 40))))


def _other_versions(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.opset_import and chance.random() < 0.7:
        chance.choice(model.opset_import).version = chance.choice((0, 1, 7, 10, 12, 99, -1))
    else:
        model.ir_version = chance.choice((0, 1, 3, 99))


def _graph_within(model: onnx.ModelProto, chance: random.Random) -> None:
    if model.graph.node:
        inner = helper.make_graph([], "inner", [], [])
        chance.choice(model.graph.node).attribute.append(helper.make_attribute("body", inner))


def _output_of_nothing(model: onnx.ModelProto, chance: random.Random) -> None:
    if chance.random() < 0.5 and model.graph.output:
        chance.choice(model.graph.output).name = chance.choice((*_names(model), "nowhere"))
    elif model.graph.input:
        chance.choice(model.graph.input).name = chance.choice((*_names(model), "nowhere"))


SURGERIES: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    *(_rewire, _rewire, _drop_input, _rename_output, _remove_node, _repeat_node, _swap_nodes, _change_operator),
    *(_change_attribute, _add_attribute, _change_dimensions, _change_type, _data_elsewhere, _other_versions),
    *(_graph_within, _output_of_nothing),
)
"""Each changes a model in place."""
