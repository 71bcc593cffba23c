"""Small float models with recurrent nodes and random weights, in the form that exporters write."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3}
WORDS = 40


class RecurrentFloatModel:
    """Two recurrent nodes in sequence, and a dense layer on the last step.

    Parameters
    ----------
    words
        Whether the input consists of word numbers, which an embedding turns into vectors; otherwise of vectors ``x``.
    states
        Whether the initial state of the first node is the input ``h0``.
    """

    length, inputs, units, outputs = 7, 4, 10, 3

    def __init__(self, operator: str, words: bool = False, states: bool = False, **attributes: object) -> None:
        self.operator, self.words, self.states = operator, words, states
        self.attributes = attributes

    def _weights(self, inputs: int, number: int) -> dict[str, NDArray[np.float32]]:
        random = np.random.default_rng(number)
        rows = GATES[self.operator] * self.units
        shapes = {"W": (1, rows, inputs), "R": (1, rows, self.units), "B": (1, 2 * rows)}
        spread = {"W": 1.5 / np.sqrt(inputs), "R": 1 / np.sqrt(self.units), "B": 0.3}
        return {
            f"{name}{number}": random.normal(0, spread[name], shape).astype(np.float32)
            for name, shape in shapes.items()
        }

    def model(self) -> onnx.ModelProto:
        """The model; equal for each call."""
        random = np.random.default_rng(3)
        constants: dict[str, NDArray[np.generic]] = {"time": np.array([1]), "direction": np.array([0])}
        constants |= {**self._weights(self.inputs, 1), **self._weights(self.units, 2)}
        constants["D"] = random.normal(0, 0.5, (self.outputs, self.units)).astype(np.float32)
        constants["d"] = random.normal(0, 0.5, self.outputs).astype(np.float32)
        nodes = []
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", self.length, self.inputs])]
        if self.words:
            constants["embedding"] = random.uniform(-1, 1, (WORDS, self.inputs)).astype(np.float32)
            nodes.append(helper.make_node("Gather", ["embedding", "words"], ["x"], name="embedding"))
            given = [helper.make_tensor_value_info("words", TensorProto.INT64, ["batch", self.length])]
        if self.states:
            given.append(helper.make_tensor_value_info("h0", TensorProto.FLOAT, [1, "batch", self.units]))
        first = ["turned", "W1", "R1", "B1", *(["", "h0"] if self.states else [])]
        options = {"hidden_size": self.units, **self.attributes}
        nodes += [
            helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=[1, 0, 2]),
            helper.make_node(self.operator, first, ["Y1", "end1"], name="first", **options),
            helper.make_node("Squeeze", ["Y1", "time"], ["steps"], name="squeeze"),
            helper.make_node(self.operator, ["steps", "W2", "R2", "B2"], ["", "end2"], name="second", **options),
            helper.make_node("Squeeze", ["end2", "direction"], ["summary"], name="summary"),
            helper.make_node("Gemm", ["summary", "D", "d"], ["scores"], name="dense", transB=1),
            helper.make_node("Softmax", ["scores"], ["probabilities"], name="softmax", axis=1),
        ]
        outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", self.outputs])]
        if self.states:
            outputs.append(helper.make_tensor_value_info("end1", TensorProto.FLOAT, [1, "batch", self.units]))
        initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "recurrent", given, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def values(self, count: int, seed: int = 0) -> dict[str, NDArray[np.generic]]:
        """Random inputs."""
        random = np.random.default_rng(seed)
        if self.words:
            values = {"words": random.integers(0, WORDS, (count, self.length))}
        else:
            values = {"x": random.uniform(-2, 2, (count, self.length, self.inputs)).astype(np.float32)}
        if self.states:
            values["h0"] = random.uniform(-0.8, 0.8, (1, count, self.units)).astype(np.float32)
        return values
