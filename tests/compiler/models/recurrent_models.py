"""ONNX models of one quantized recurrent node, and their results in ONNX Runtime."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from openmxu.exact_session import exact_session

RANKS = {"Y": 4, "Y_h": 3, "Y_c": 3, "sequence": 3, "last": 2}


@dataclass
class RecurrentModel:
    """A model with the input ``x``, quantized to int8, and a node ``cell`` with random weights.

    Attributes
    ----------
    batch_first
        Whether ``x`` is (batch, steps, inputs) in any layout; otherwise the graph has no Transpose.
    states
        Whether there are initial states ``h0`` and, for an LSTM, ``c0``.
    fixed
        Those that are constants; the others are inputs.
    outputs
        Outputs of the node, or ``sequence`` (batch, steps, units) and ``last`` (batch, units).
    """

    operator: str
    length: int = 5
    inputs: int = 3
    units: int = 6
    layout: int = 0
    batch_first: bool = True
    states: bool = False
    fixed: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    outputs: Sequence[str] = ("Y_h",)
    attributes: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0

    @property
    def initial(self) -> list[str]:
        """Names of the initial states."""
        if not self.states:
            return []
        return ["h0", "c0"] if self.operator == "LSTM" else ["h0"]

    @property
    def given(self) -> list[str]:
        """Names of the states that are inputs."""
        return [name for name in self.initial if name not in self.fixed]

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """The constants; in each row, products with input and hidden state have the same scale."""
        random = np.random.default_rng(self.seed)
        rows = (4 if self.operator == "LSTM" else 3) * self.units
        weights = random.normal(0, 0.6, (1, rows, self.inputs))
        recurrence = random.normal(0, 0.5, (1, rows, self.units))
        x_scale, h_scale = 0.02, 1 / 127
        product = np.maximum(np.abs(weights).max(axis=2) * x_scale, np.abs(recurrence).max(axis=2) * h_scale)[0] / 127
        constants = {"B": random.normal(0, 0.3, (1, 2 * rows)).astype(np.float32)}
        for name, array, scale in (("W", weights, product / x_scale), ("R", recurrence, product / h_scale)):
            constants[f"{name} integers"] = np.rint(array / scale[:, np.newaxis]).astype(np.int8)
            constants[f"{name} scale"] = scale.astype(np.float32)
        return constants | {"x scale": np.float32(x_scale), "zero": np.int8(0), **self.fixed}

    def model(self) -> onnx.ModelProto:
        """The model."""
        constants = self.constants()
        source = "x"
        nodes = [
            helper.make_node("DequantizeLinear", [f"{name} integers", f"{name} scale"], [name], axis=1) for name in "WR"
        ]
        if self.batch_first and not self.layout:
            nodes.append(helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]))
            source = "turned"
        nodes.append(helper.make_node("QuantizeLinear", [source, "x scale", "zero"], ["bytes"]))
        nodes.append(helper.make_node("DequantizeLinear", ["bytes", "x scale", "zero"], ["real"]))
        made = ["Y", "Y_h", "Y_c"] if self.operator == "LSTM" else ["Y", "Y_h"]
        inputs = ["real", "W", "R", "B", *(["", *self.initial] if self.states else [])]
        attributes = {"hidden_size": self.units, **({"layout": 1} if self.layout else {}), **self.attributes}
        cell = helper.make_node(self.operator, inputs, made, name="cell", **attributes)
        for key, value in self.metadata.items():
            cell.metadata_props.add(key=key, value=value)
        nodes.append(cell)
        directions = 2 if self.layout else 1
        if {"sequence", "last"} & set(self.outputs):
            constants |= {"directions": np.array([directions]), "end": np.array(-1)}
            nodes.append(helper.make_node("Squeeze", ["Y", "directions"], ["steps"]))
        if "sequence" in self.outputs:
            perm = [0, 1, 2] if self.layout else [1, 0, 2]
            nodes.append(helper.make_node("Transpose", ["steps"], ["sequence"], perm=perm))
        if "last" in self.outputs:
            nodes.append(helper.make_node("Gather", ["steps", "end"], ["last"], axis=1 if self.layout else 0))
        time_first = not self.batch_first and not self.layout
        shape = [self.length, "batch", self.inputs] if time_first else ["batch", self.length, self.inputs]
        state = ["batch", 1, self.units] if self.layout else [1, "batch", self.units]
        graph = helper.make_graph(
            nodes,
            "recurrent",
            [
                helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
                *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in self.given),
            ],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * RANKS[name]) for name in self.outputs],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)

    def values(self, batch: int, seed: int = 0) -> dict[str, NDArray[np.float32]]:
        """Random inputs."""
        random = np.random.default_rng(seed)
        time_first = not self.batch_first and not self.layout
        x = random.uniform(-1, 1, (batch, self.length, self.inputs)).astype(np.float32)
        values = {"x": x.transpose(1, 0, 2) if time_first else x}
        shape = (batch, 1, self.units) if self.layout else (1, batch, self.units)
        return values | {name: random.uniform(-1, 1, shape).astype(np.float32) for name in self.given}

    def reference(self, values: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Results of ONNX Runtime in float32. It only supports layout 0, so other models are converted."""
        model = self.model()
        if self.layout:
            fixed = {name: array.transpose(1, 0, 2) for name, array in self.fixed.items()}
            plain = dataclasses.replace(self, layout=0, batch_first=True, fixed=fixed)
            model = plain.model()
            values = {name: array if name == "x" else array.transpose(1, 0, 2) for name, array in values.items()}
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = exact_session(model.SerializeToString(), options)
        results = dict(zip(self.outputs, session.run(None, dict(values)), strict=True))
        if self.layout:
            turns = {"Y": (2, 0, 1, 3), "Y_h": (1, 0, 2), "Y_c": (1, 0, 2)}
            results = {
                name: array.transpose(turns[name]) if name in turns else array for name, array in results.items()
            }
        return results
