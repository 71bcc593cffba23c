"""Quantization of recurrent cells, which ONNX Runtime's static quantizer does not support.

W and R become int8 with a scale for each row, so that in a row input scale × W scale = hidden scale × R scale: both
products then add up in one accumulator. The scales within the cell go into the node's metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from openmxu.compiler.errors import ModelError
from openmxu.compiler.recurrent.scales import METADATA, REACHES, TABLE_STEPS
from openmxu.compiler.recurrent.support import GATES, attributes_of, unsupported_feature
from openmxu.quantizer.float_cells import CellWeights, Statistics, observe_gru, observe_lstm
from openmxu.segments.bodies import inputs_of
from openmxu.segments.graph_runner import GraphError, GraphRunner, with_outputs

__all__ = ["CellQuantization", "calibrate_cells", "output_overrides", "quantize_cells"]

_LAYOUT_ONLY = (
    *(
        "DequantizeLinear",
        "Flatten",
        "Gather",
        "Identity",
        "QuantizeLinear",
        "Reshape",
        "Slice",
        "Squeeze",
        "Transpose",
    ),
    "Unsqueeze",
)
"""Operators that move or drop elements without changing their values."""

_METADATA_IR_VERSION = 10
"""The first IR version with metadata of nodes."""

_HIDDEN_MARGIN, _CELL_MARGIN = 1.1, 2.0
"""Factors by which states may exceed their range on the calibration data; 16 bits leave room for generous ones."""

_SHARE = 0.9999
"""Share of a function's inputs that its table covers, unless the function needs a smaller range."""


@dataclass(frozen=True)
class CellQuantization:
    """The calibration results of one recurrent node.

    Attributes
    ----------
    inputs
        Smallest and largest number of the input.
    scales
        Scales within the cell, by name as in the metadata.
    """

    node: str
    weights: CellWeights
    inputs: tuple[float, float]
    scales: Mapping[str, float]


def calibrate_cells(
    model: onnx.ModelProto, batches: Sequence[Mapping[str, NDArray[Any]]]
) -> dict[str, CellQuantization]:
    """Run the float model, and its recurrent nodes step by step.

    Returns
    -------
    The results for each recurrent node that the compiler supports, by name; others stay in float32.

    Raises
    ------
    ModelError
        The model cannot be run.
    """
    constants = {item.name for item in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in GATES]
    cells = [_Cell.of(model.graph, node) for node in nodes if _is_supported(node, constants)]
    if not cells:
        return {}
    names = list(dict.fromkeys(name for cell in cells for name in (cell.x, *cell.initial) if name))
    runner = GraphRunner(with_outputs(model, names).SerializeToString())
    for batch in batches:
        try:
            values = dict(zip(names, runner.run(batch), strict=True))
        except GraphError as error:
            raise ModelError(f"the float model cannot be run: {error}") from None
        for cell in cells:
            cell.observe(values)
    return {cell.node.name: cell.quantization() for cell in cells}


def _is_supported(node: onnx.NodeProto, constants: Collection[str]) -> bool:
    """Whether the compiler can translate a recurrent node once it is quantized."""
    if unsupported_feature(node, attributes_of(node)) is not None:
        return False
    return all(name in constants for name in node.input[1:4] if name)


@dataclass
class _Cell:
    """A recurrent node and its statistics."""

    node: onnx.NodeProto
    weights: CellWeights
    linear_before_reset: bool
    is_reverse: bool
    layout: int
    statistics: Statistics
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, graph: onnx.GraphProto, node: onnx.NodeProto) -> _Cell:
        attributes = attributes_of(node)
        constants = {item.name: item for item in graph.initializer}

        def constant(index: int) -> NDArray[np.float32]:
            return numpy_helper.to_array(constants[node.input[index]])[0]

        weights, recurrence = constant(1), constant(2)
        rows = len(weights)
        bias = constant(3) if len(node.input) > 3 and node.input[3] else np.zeros(2 * rows, np.float32)
        return cls(
            node=node,
            weights=CellWeights(weights, recurrence, bias[:rows], bias[rows:]),
            linear_before_reset=bool(attributes.get("linear_before_reset", 0)),
            is_reverse=attributes.get("direction", b"forward") == b"reverse",
            layout=int(attributes.get("layout", 0)),
            statistics=Statistics(),
        )

    @property
    def x(self) -> str:
        return self.node.input[0]

    @property
    def initial(self) -> tuple[str, ...]:
        """Names of initial states; empty for a missing one."""
        count = 2 if self.node.op_type == "LSTM" else 1
        return tuple(self.node.input[index] if index < len(self.node.input) else "" for index in range(5, 5 + count))

    def observe(self, values: Mapping[str, NDArray[np.float32]]) -> None:
        """Observe one batch."""
        x = values[self.x]
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        if self.layout:
            x = x.transpose(1, 0, 2)
        if self.is_reverse:
            x = x[::-1]
        zeros = np.zeros((x.shape[1], self.weights.units), np.float32)
        initial = tuple(values[name].reshape(-1, self.weights.units) if name else zeros for name in self.initial)
        if self.node.op_type == "LSTM":
            observe_lstm(self.weights, x, initial, self.statistics)
        else:
            observe_gru(self.weights, x, initial, self.statistics, self.linear_before_reset)

    def quantization(self) -> CellQuantization:
        seen, operator = self.statistics, self.node.op_type
        scales = {"hidden": _hidden_scale(seen.hidden)}
        for name, most in REACHES[operator].items():
            reach = max(1.0, min(getattr(seen, name).quantile(_SHARE), most))
            scales[name] = reach / TABLE_STEPS[operator][name]
        if operator == "LSTM":
            scales["cell"] = max(_CELL_MARGIN * seen.cell, 1.0) / (1 << 15)
        return CellQuantization(self.node.name, self.weights, (self.low, self.high), scales)


def _hidden_scale(largest: float) -> float:
    """Scale of a hidden state that is an average of hyperbolic tangents and of the initial state."""
    return max(min(_HIDDEN_MARGIN * largest, max(1.0, largest)), 1e-3) / 127


def output_overrides(
    graph: onnx.GraphProto, cells: Mapping[str, CellQuantization]
) -> dict[str, list[dict[str, object]]]:
    """Overrides for ONNX Runtime's quantizer that give hidden states the cell's scale wherever they are used."""
    from onnxruntime.quantization import QuantType

    return {
        name: [
            {"quant_type": QuantType.QInt8, "scale": np.array(scale, np.float32), "zero_point": np.array(0, np.int8)}
        ]
        for name, scale in _hidden_tensors(graph, cells).items()
    }


def _hidden_tensors(graph: onnx.GraphProto, cells: Mapping[str, CellQuantization]) -> dict[str, float]:
    """Tensors that hold hidden states of cells, with the cells' scales."""
    found: dict[str, float] = {}
    for node in graph.node:
        if node.name in cells:
            hidden = node.output[:2]
            found |= {name: cells[node.name].scales["hidden"] for name in hidden if name}
        elif node.op_type in _LAYOUT_ONLY and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def quantize_cells(model: onnx.ModelProto, cells: Mapping[str, CellQuantization], activations: str) -> None:
    """Quantize the recurrent nodes of a model whose other nodes are quantized already."""
    graph = model.graph
    hidden = _hidden_tensors(graph, cells)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.name in cells:
            nodes += _quantized(graph, node, cells[node.name], hidden.get(node.input[0]), activations)
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in graph.node for name in inputs_of(node)}
    kept = [item for item in graph.initializer if item.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.ir_version = max(model.ir_version, _METADATA_IR_VERSION)


def _quantized(
    graph: onnx.GraphProto, node: onnx.NodeProto, cell: CellQuantization, hidden: float | None, activations: str
) -> Iterator[onnx.NodeProto]:
    """Replace one node by a quantized one, with these nodes in front of it; ``hidden`` is the scale of another cell's
    output that it reads."""
    scale: NDArray[np.float32] | np.float32 | None = _quantized_scale(graph, node.input[0])
    if scale is None:
        zero_point: np.integer
        if hidden is not None:
            scale, zero_point = np.float32(hidden), np.int8(0)
        else:
            scale, zero_point = _range_scale(*cell.inputs, activations)
        names = _constants(graph, f"{node.name} X", scale=scale, zero_point=zero_point)
        yield helper.make_node("QuantizeLinear", [node.input[0], *names], [f"{node.name} X quantized"])
        yield helper.make_node("DequantizeLinear", [f"{node.name} X quantized", *names], [f"{node.name} X"])
        node.input[0] = f"{node.name} X"
    products = _product_scales(node, cell, float(scale))
    for index, what, weights, factor, product in (
        (1, "W", cell.weights.weights, float(scale), products[0]),
        (2, "R", cell.weights.recurrence, cell.scales["hidden"], products[1]),
    ):
        row_scales = (product / factor).astype(np.float32)
        integers = np.clip(np.rint(weights / row_scales[:, np.newaxis]), -127, 127).astype(np.int8)
        names = _constants(graph, f"{node.name} {what}", integers=integers[np.newaxis], scale=row_scales)
        yield helper.make_node("DequantizeLinear", names, [f"{node.name} {what}"], axis=1)
        node.input[index] = f"{node.name} {what}"
    for name, value in cell.scales.items():
        node.metadata_props.add(key=f"{METADATA}{name}", value=repr(float(value)))


def _quantized_scale(graph: onnx.GraphProto, name: str) -> NDArray[np.float32] | None:
    """The scale of a tensor that is quantized already."""
    maker = next((node for node in graph.node if name in node.output), None)
    if maker is None or maker.op_type != "DequantizeLinear":
        return None
    return next(numpy_helper.to_array(item) for item in graph.initializer if item.name == maker.input[1])


def _range_scale(low: float, high: float, activations: str) -> tuple[np.float32, np.integer]:
    """Scale and zero point of the smallest range of integers that holds these numbers and 0."""
    scale = np.float32(max(high - low, 1e-6) / 255)
    limits = np.iinfo(activations)
    zero_point = np.clip(np.rint(limits.min - low / scale), limits.min, limits.max)
    return scale, zero_point.astype(activations)


def _product_scales(
    node: onnx.NodeProto, cell: CellQuantization, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scales of the products in each row of W and R: equal, unless the products go to separate sums."""
    weights, recurrence = (
        np.maximum(np.abs(array).max(axis=1).astype(np.float64) * factor / 127, 1e-12)
        for array, factor in ((cell.weights.weights, scale), (cell.weights.recurrence, cell.scales["hidden"]))
    )
    both = np.maximum(weights, recurrence)
    if node.op_type == "GRU" and attributes_of(node).get("linear_before_reset", 0):
        # The reset gate multiplies the product with R for the candidate.
        rows = 2 * cell.weights.units
        return np.append(both[:rows], weights[rows:]), np.append(both[:rows], recurrence[rows:])
    return both, both


def _constants(graph: onnx.GraphProto, prefix: str, **arrays: NDArray[Any] | np.generic) -> list[str]:
    """Add constants to a graph; returns their names."""
    names = []
    for what, array in arrays.items():
        names.append(f"{prefix} {what}")
        graph.initializer.append(numpy_helper.from_array(np.asarray(array), names[-1]))
    return names
