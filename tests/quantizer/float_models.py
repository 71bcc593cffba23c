"""Small float ONNX models with random weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


class FloatModel:
    """A chain of float operators that is built node by node, starting from the input ``x``.

    Parameters
    ----------
    shape
        Shape of the input, without the batch.
    """

    def __init__(self, shape: Sequence[int], seed: int = 0, batch: int | str = "batch", opset: int = 17) -> None:
        self.random = np.random.default_rng(seed)
        self._input = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, *shape])
        self._batch = batch
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, NDArray[np.generic]] = {}
        self.last = "x"

    def constant(self, array: NDArray[np.generic]) -> str:
        """Add a constant and return its name; real numbers become float32."""
        name = f"c{len(self._constants)}"
        self._constants[name] = array if np.issubdtype(array.dtype, np.integer) else array.astype(np.float32)
        return name

    def add(self, operator: str, *others: str, source: str = "", **attributes: object) -> FloatModel:
        """Append an operator that reads ``source``, or else the last result, and then ``others``."""
        name = f"t{len(self._nodes)}"
        inputs = [source or self.last, *others]
        self._nodes.append(helper.make_node(operator, inputs, [name], name=f"{operator.lower()}_{name}", **attributes))
        self.last = name
        return self

    def conv(self, inputs: int, outputs: int, kernel: int, **attributes: object) -> FloatModel:
        """Append a convolution with bias."""
        weights = self.random.normal(size=(outputs, inputs, kernel, kernel)) / (kernel * np.sqrt(inputs))
        return self.add("Conv", self.constant(weights), self.constant(self.random.normal(size=outputs)), **attributes)

    def normalize(self, channels: int) -> FloatModel:
        """Append a BatchNormalization, some of whose scales are negative."""
        parameters = (*self.random.normal(size=(3, channels)), self.random.uniform(0.5, 2, channels))
        return self.add("BatchNormalization", *(self.constant(array) for array in parameters))

    def dense(self, inputs: int, outputs: int) -> FloatModel:
        """Append a Gemm with its weights in PyTorch's format."""
        weights = self.random.normal(size=(outputs, inputs)) / np.sqrt(inputs)
        bias = self.random.normal(size=outputs)
        return self.add("Gemm", self.constant(weights), self.constant(bias), transB=1)

    def model(self) -> onnx.ModelProto:
        """The model; its output is the last result."""
        output = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        constants = [numpy_helper.from_array(array, name) for name, array in self._constants.items()]
        graph = helper.make_graph(self._nodes, "float", [self._input], [output], constants)
        imports = [helper.make_opsetid("", self._opset)]
        inferred = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=8))
        onnx.checker.check_model(inferred)
        return inferred

    def inputs(self, count: int) -> NDArray[np.float32]:
        """Random inputs."""
        shape = [dim.dim_value for dim in self._input.type.tensor_type.shape.dim][1:]
        return self.random.normal(size=(count, *shape)).astype(np.float32)
