"""Products of two activations as ONNX models and as networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Result
from openmxu.compiler.tensor_products.matrices import Matrices
from openmxu.compiler.tensor_products.product import TensorProduct
from openmxu.segments.host_tensor import HostTensor
from scripts.random_models import random_bytes

TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32, "float32": TensorProto.FLOAT}


@dataclass(frozen=True)
class Heads:
    """``heads`` products of ``rows`` × ``inner`` by ``inner`` × ``columns`` matrices, side by side in channels."""

    heads: int
    rows: int
    inner: int
    columns: int
    transposed: bool

    def network(self, random: np.random.Generator) -> Network:
        """A network of these products alone, whose results lie side by side as well."""
        dtypes = [str(random.choice(["int8", "uint8"])) for _ in range(3)]
        right_rows, right_columns = (self.columns, self.inner) if self.transposed else (self.inner, self.columns)
        shapes = (self.rows, self.inner), (right_rows, right_columns), (self.rows, self.columns)
        tensors = {
            name: Tensor(rows, 1, self.heads * columns, dtype == "int8")
            for name, (rows, columns), dtype in zip("aby", shapes, dtypes, strict=True)
        }
        left, right, made = (
            Matrices((0,) * self.heads, tuple(head * columns for head in range(self.heads))) for _, columns in shapes
        )
        zero_points = tuple(int(random_bytes(random, dtype, ())) for dtype in dtypes)
        limits = np.iinfo(dtypes[2])
        operation = TensorProduct(
            name="product",
            sources=("a", "b"),
            target="y",
            result=Result(np.float32(0.7 / (90 * self.inner**0.5)), zero_points[2], int(limits.min), int(limits.max)),
            left=left,
            right=right,
            made=made,
            rows=self.rows,
            inner=self.inner,
            columns=self.columns,
            transposed=self.transposed,
            input_signed=(dtypes[0] == "int8", dtypes[1] == "int8"),
            zero_points=zero_points[:2],
            plane=(self.rows, 1),
        )
        ports = [_port(name, tensors[name], dtype) for name, dtype in zip("aby", dtypes, strict=True)]
        return Network(tuple(ports[:2]), (ports[2],), tensors, (operation,))


def _port(name: str, tensor: Tensor, dtype: str) -> Port:
    return Port(HostTensor(name, dtype, (tensor.height, tensor.channels), tensor.channels, dtype), name)


def inputs(network: Network, batch: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Random integers for the inputs of a network."""
    return {port.host.name: random_bytes(random, port.host.dtype, (batch, *port.host.shape)) for port in network.inputs}


def make(nodes: list[onnx.NodeProto], given: dict[str, tuple[str, tuple]], made: dict[str, tuple], **constants: object):
    """A model of some nodes; ``given`` and ``made`` have type and shape of each input and output."""
    sides = [
        [helper.make_tensor_value_info(name, TYPES[kind], ["n", *shape]) for name, (kind, shape) in side.items()]
        for side in (given, made)
    ]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "product", *sides, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def qlinear_product(
    left: tuple[int, ...], right: tuple[int, ...], types: tuple[str, str], random: np.random.Generator
) -> onnx.ModelProto:
    """QLinearMatMul of inputs ``a`` and ``b``, whose shapes are without the batch."""
    names = "a a_scale a_zero_point b b_scale b_zero_point y_scale y_zero_point"
    lead = np.broadcast_shapes(left[:-2], right[:-2])
    return make(
        [helper.make_node("QLinearMatMul", names.split(), ["y"], name="product")],
        {"a": (types[0], left), "b": (types[1], right)},
        {"y": (types[0], (*lead, left[-2], right[-1]))},
        a_scale=np.float32(0.02),
        b_scale=np.float32(0.013),
        y_scale=np.float32(0.02 * 0.013 * 90 * left[-1] ** 0.5),
        a_zero_point=random_bytes(random, types[0], ()),
        b_zero_point=random_bytes(random, types[1], ()),
        y_zero_point=random_bytes(random, types[0], ()),
    )
