"""What LSTM and GRU of ONNX mean for the network under construction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.builder import Input
from openmxu.compiler.operators.sequences import arranged, plain, unarranged
from openmxu.compiler.operators.values import Constant, FloatInput, Integers, Real, RealConstant, Value, WideReal
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.encoding import Weights
from openmxu.compiler.recurrent.gru import HIDDEN as GRU_HIDDEN
from openmxu.compiler.recurrent.gru import STATE, STATE_STEPS, GruScales, gru
from openmxu.compiler.recurrent.lstm import CELL, LstmScales, lstm
from openmxu.compiler.recurrent.lstm import HIDDEN as LSTM_HIDDEN
from openmxu.compiler.recurrent.scales import DEFAULTS, METADATA
from openmxu.compiler.recurrent.support import GATES, unsupported_feature
from openmxu.segments.host_tensor import dequantize, quantize

__all__ = ["gru_operator", "lstm_operator"]


@dataclass(frozen=True)
class _Node:
    """A recurrent node once its attributes and constants are checked.

    ``layout`` is ONNX's: 0 for time before batch. ``scales`` are those of :data:`DEFAULTS`, by name.
    """

    here: Visit
    x: Real
    units: int
    layout: int
    weights: Weights
    recurrence: Weights
    biases: NDArray[np.float64]
    scales: Mapping[str, float]

    @property
    def length(self) -> int:
        """Steps."""
        return self.x.shape[0]

    def common(self, sources: tuple[str, ...], **tensors: Any) -> dict[str, Any]:
        """What every recurrent operation has."""
        x = self.x
        low, high = (-128, 127) if x.integers.dtype == "int8" else (0, 255)
        return {
            "name": self.here.name,
            "sources": sources,
            "input_signed": x.integers.dtype == "int8",
            "zero_point": x.zero_point,
            "input_largest": max(high - x.zero_point, x.zero_point - low),
            "reverse": self.here.attributes.get("direction", b"forward") == b"reverse",
            "weights": self.weights,
            "recurrence": self.recurrence,
            **tensors,
        }


def lstm_operator(here: Visit) -> tuple[Value | None, ...]:
    """LSTM: the sequence, the final hidden state and the final cell state."""
    node = _read(here)
    scales = node.scales
    sources, initial = [node.x.integers.tensor], {}
    for index, name, scale, dtype in ((5, LSTM_HIDDEN, "hidden", "int8"), (6, CELL, "cell", "int16")):
        tensor = _initial(node, index, scales[scale], dtype)
        if tensor is not None:
            initial[name] = tensor
            sources.append(tensor)
    names = _outputs(here, 3)
    final = {name: tensor for name, tensor in zip((LSTM_HIDDEN, CELL), names[1:], strict=True) if tensor}
    if names[0]:
        final.setdefault(LSTM_HIDDEN, f"{names[0]} last step")
    operation = lstm(
        bias=node.biases.reshape(2, -1).sum(axis=0),
        scales=LstmScales(
            float(node.x.scale), scales["hidden"], scales["cell"], scales["sigmoid"], scales["memory"], scales["tanh"]
        ),
        target=names[0] or next(iter(final.values())),
        sequence=names[0] or None,
        initial=initial,
        final=final,
        **node.common(tuple(dict.fromkeys(sources))),
    )
    _add(node, operation)
    cell = WideReal(names[2], (1, node.units), np.float32(scales["cell"])) if names[2] else None
    return *_results(node, operation, names[:2], LSTM_HIDDEN, None), _arranged_state(node, cell)


def gru_operator(here: Visit) -> tuple[Value | None, ...]:
    """GRU: the sequence and the final state."""
    node = _read(here)
    scales, units = node.scales, node.units
    state_scale = scales["hidden"] / STATE_STEPS
    initial = {}
    is_byte = isinstance(plain(here.input(5)), Real)
    tensor = _initial(node, 5, scales["hidden"], "int8") if is_byte else _initial(node, 5, state_scale, "int16")
    if tensor is not None:
        initial[GRU_HIDDEN if is_byte else STATE] = tensor
    names = _outputs(here, 2)
    final = {}
    if names[1]:
        final = {GRU_HIDDEN: names[1], STATE: f"{names[1]} in 16 bits"}
    elif names[0]:
        final = {GRU_HIDDEN: f"{names[0]} last step"}
    operation = gru(
        bias=node.biases[: 3 * units],
        recurrence_bias=node.biases[3 * units :],
        linear_before_reset=bool(here.attributes.get("linear_before_reset", 0)),
        scales=GruScales(float(node.x.scale), scales["hidden"], scales["sigmoid"], scales["memory"], scales["tanh"]),
        target=names[0] or names[1],
        sequence=names[0] or None,
        initial=initial,
        final=final,
        **node.common(tuple(dict.fromkeys((node.x.integers.tensor, *initial.values())))),
    )
    _add(node, operation)
    precise = (final[STATE], np.float32(state_scale)) if names[1] else None
    return _results(node, operation, names, GRU_HIDDEN, precise)


def _read(here: Visit) -> _Node:
    """Check everything that LSTM and GRU have in common."""
    operator = here.node.op_type
    attributes = here.attributes
    reason = unsupported_feature(here.node, attributes)
    if reason is not None:
        raise here.unsupported(reason)
    layout = int(attributes.get("layout", 0))
    x = _sequence(here, layout)
    weights, recurrence = (_weights(here, index, name) for index, name in ((1, "W"), (2, "R")))
    units = recurrence.integers.shape[1]
    rows = GATES[operator] * units
    for name, array, inputs in (("W", weights, x.shape[-1]), ("R", recurrence, units)):
        if array.integers.shape != (rows, inputs):
            raise ModelError(
                f"node {here.name!r} ({operator}): {name} must have the shape (1, {rows}, {inputs}), "
                f"not {(1, *array.integers.shape)}"
            )
    if int(attributes.get("hidden_size", units)) != units:
        raise ModelError(f"node {here.name!r} ({operator}): hidden_size {attributes['hidden_size']} is not {units}")
    return _Node(here, x, units, layout, weights, recurrence, _biases(here, 2 * rows), _scales(here))


def _sequence(here: Visit, layout: int) -> Real:
    """The input as (steps, channels), its rows a matrix of the network."""
    value, order = unarranged(here.input(0))
    if not isinstance(value, Real) or value.nodes or value.integers.is_wide:
        raise here.unsupported("its input must be int8 or uint8 through DequantizeLinear")
    wanted = (0, 1, 2) if layout else (1, 0, 2)
    if order != wanted:
        place = "first" if layout else "second"
        raise here.unsupported(
            f"the batch must be the {place} of three dimensions of its input, as layout {layout} says"
        )
    builder = here.builder
    if builder.is_open(value.integers):
        builder.as_matrix(value.integers)
    tensor = builder.tensors[value.integers.tensor]
    if builder.channels_first[value.integers.tensor] or (tensor.positions, tensor.channels) != value.shape:
        raise here.unsupported(f"its input must be a matrix of steps and channels, not of shape {value.shape}")
    return value


def _weights(here: Visit, index: int, name: str) -> Weights:
    """W or R of the only direction."""
    value = here.input(index)
    if not isinstance(value, RealConstant) or value.integers.dtype not in (np.int8, np.uint8):
        raise here.unsupported(
            f"{name} must be a constant of int8 through DequantizeLinear; openmxu.quantize makes it so"
        )
    integers = value.integers
    if integers.ndim != 3 or integers.shape[0] != 1:
        raise ModelError(f"node {here.name!r}: {name} must have three dimensions, the first one 1: {integers.shape}")
    if value.scale.size > 1 and value.axis != 1:
        raise here.unsupported(f"the scales of {name} must be for the whole of it or along axis 1")
    shape = integers.shape[1]
    zero_point = np.broadcast_to(value.zero_point.reshape(-1), shape).astype(np.int16)
    scale = np.broadcast_to(value.scale.reshape(-1), shape)
    return Weights(integers[0].astype(np.int16) - zero_point[:, np.newaxis], scale)


def _biases(here: Visit, count: int) -> NDArray[np.float64]:
    """B, (2 · gates · units,)."""
    value = here.input(3)
    if value is None:
        return np.zeros(count)
    if not isinstance(value, (Constant, RealConstant)):
        raise here.unsupported("B must be a constant")
    array = np.asarray(value.array, np.float64)
    if array.shape != (1, count):
        raise ModelError(f"node {here.name!r}: B must have the shape (1, {count}), not {array.shape}")
    return array.reshape(-1)


def _scales(here: Visit) -> dict[str, float]:
    """The scales within the cell: what the node's metadata says, or else the defaults."""
    scales = dict(DEFAULTS[here.node.op_type])
    for entry in here.node.metadata_props:
        name = entry.key.removeprefix(METADATA)
        if name == entry.key:
            continue
        if name not in scales:
            raise ModelError(f"node {here.name!r}: unknown metadata {entry.key!r}; known: {', '.join(scales)}")
        try:
            value = float(entry.value)
        except ValueError:
            value = math.nan
        if not 1e-20 < value < 1e20:
            raise ModelError(f"node {here.name!r}: {entry.key} must be a positive number, not {entry.value!r}")
        scales[name] = value
    return scales


def _initial(node: _Node, index: int, scale: float, dtype: str) -> str | None:
    """The tensor of an initial state; ``None`` for zeros."""
    here = node.here
    given = here.input(index)
    if given is None or (isinstance(given, (Constant, RealConstant)) and not np.any(given.array)):
        return None
    what = "initial_h" if index == 5 else "initial_c"
    if isinstance(given, (Constant, RealConstant)):
        return _constant_state(node, np.asarray(given.array), scale, dtype, what)
    value, order = unarranged(given)
    if order != ((0, 1, 2) if node.layout else (1, 0, 2)) or value.shape != (1, node.units):
        raise here.unsupported(f"{what} must be 0 or have the shape (1, batch, {node.units})")
    match value:
        case FloatInput():
            return _quantized_state(here, value, scale, dtype)
        case Real(nodes=()) if dtype == "int8" and not value.integers.is_wide:
            return _rescaled_state(here, value, scale, f"{here.name} {what}")
    raise here.unsupported(f"{what} must be a constant or a float32 input of the model")


def _constant_state(node: _Node, array: NDArray[Any], scale: float, dtype: str, what: str) -> str:
    """The tensor of a state that is the same for all elements of the batch."""
    here, units = node.here, node.units
    if array.ndim != 3 or array.shape[node.layout] != 1 or array.shape[-1] != units:
        raise here.unsupported(f"{what} must have the shape (1, batch, {units})")
    rows = array.reshape(-1, units)
    if (rows != rows[:1]).any():
        raise here.unsupported(f"a constant {what} must be the same for all elements of the batch")
    name, builder = f"{here.name} {what}", here.builder
    integers = quantize(rows[0].astype(np.float32), np.float32(scale), 0, dtype)
    builder.constants[name] = integers.astype(np.int32).reshape(1, 1, units)
    builder.place(name, Tensor(1, 1, units, True, np.dtype(dtype).itemsize), channels_first=False)
    return name


def _quantized_state(here: Visit, value: FloatInput, scale: float, dtype: str) -> str:
    """The tensor that the host makes of a float32 input."""
    builder = here.builder
    name = f"{value.name} of {here.name}"
    builder.inputs[name] = Input(value.name, "float32", value.given_shape, dtype, float(np.float32(scale)), 0)
    item = np.dtype(dtype).itemsize
    builder.place(name, Tensor(1, 1, value.shape[-1], True, item), channels_first=False)
    return name


def _rescaled_state(here: Visit, value: Real, scale: float, target: str) -> str:
    """The tensor of a quantized state with the scale that the cell wants."""
    integers, builder = value.integers, here.builder
    table = dequantize(np.arange(256, dtype=np.uint8).view(integers.dtype), value.scale, value.zero_point)
    made = builder.add_lookup(here.name, integers, target, quantize(table, np.float32(scale), 0, "int8"))
    if builder.is_open(made):
        builder.as_matrix(made)
    return made.tensor


def _outputs(here: Visit, count: int) -> list[str]:
    """The names of the node's outputs, empty where there is none."""
    return [here.node.output[index] if index < len(here.node.output) else "" for index in range(count)]


def _add(node: _Node, operation: Recurrent) -> None:
    builder = node.here.builder
    builder.operations.append(operation)
    if operation.sequence is not None:
        builder.place(operation.sequence, Tensor(node.length, 1, node.units, True), channels_first=False)
    for value, tensor in operation.final.items():
        item = operation.formats[value].item
        builder.place(tensor, Tensor(1, 1, node.units, True, item), channels_first=False)


def _results(
    node: _Node, operation: Recurrent, names: list[str], hidden: str, precise: tuple[str, np.float32] | None
) -> tuple[Value | None, Value | None]:
    """The sequence and the final state as the graph sees them."""
    scale, units = np.float32(node.scales["hidden"]), node.units
    last = Real(Integers(operation.final[hidden], (1, units), "int8"), scale, 0, precise=precise)
    sequence = None
    if names[0]:
        node.here.builder.last_steps[names[0]] = last
        shape, order = (node.length, 1, units), ((0, 1, 2, 3) if node.layout else (1, 2, 0, 3))
        sequence = arranged(Real(Integers(names[0], shape, "int8"), scale, 0), order)
    return sequence, _arranged_state(node, last if names[1] else None)


def _arranged_state(node: _Node, state: Value | None) -> Value | None:
    return None if state is None else arranged(state, (0, 1, 2) if node.layout else (1, 0, 2))
