"""The network under construction, and the arithmetic that turns quantization parameters into results."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Port, Tensor
from openmxu.compiler.ir.operations import Combination, Convolution, Operation, Pooling, Result, byte_table, lookup
from openmxu.compiler.ir.sum_scales import QuantizedSum, sum_scales
from openmxu.compiler.ir.window import Window
from openmxu.compiler.operators.values import Integers, Sums, Value
from openmxu.segments.host_tensor import HostTensor, quantize

if TYPE_CHECKING:
    import onnx

__all__ = ["Builder", "Input", "byte_limits", "check_scale", "node_name", "normal", "per_column", "quantized_limits"]

_SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal


def node_name(node: onnx.NodeProto) -> str:
    """The node's name, or its first output's where it has none."""
    return node.name or (node.output[0] if node.output else "") or "unnamed"


def normal(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scales with the smallest normal number in place of smaller positive ones.

    Quantizers write such scales for channels whose weights are next to nothing. Times any sum of 32 bits either is
    nothing.
    """
    is_tiny = (scale > 0) & (scale < _SMALLEST_NORMAL)
    return np.where(is_tiny, _SMALLEST_NORMAL, scale).astype(np.float32) if is_tiny.any() else scale


def check_scale(node: str, what: str, scale: NDArray[np.float32]) -> None:
    """Check that scales are positive, finite, normal float32 numbers.

    Raises
    ------
    ModelError
        One is not.
    """
    bad = ~(np.isfinite(scale) & (scale >= _SMALLEST_NORMAL))
    if bad.any():
        value = np.asarray(scale)[bad].reshape(-1)[0]
        raise ModelError(f"node {node!r}: {what} must be a positive, finite, normal float32 number, not {value}")


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of the graph: the shape that the caller gives, and the QuantizeLinear that the host does.

    ``stored`` is the type of its integers; ``scale`` is ``None`` where it is given as integers.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: str
    scale: float | None = None
    zero_point: int = 0


@dataclasses.dataclass
class Builder:
    """What the importer knows so far.

    Attributes
    ----------
    values
        Of every tensor of the graph made so far, by name.
    opset
        Version of the model's operators.
    batch
        The inputs' fixed batch, or ``None``.
    operations
        Finished ones.
    tensors
        Of the network; those of inputs appear when an operation first decides what the input's columns are.
    channels_first
        For each of the tensors, whether the graph has channels before positions.
    inputs
        By the names of their tensors.
    constants
        As in a network.
    last_steps
        The last step of a sequence, by the name of its tensor.
    batch_axes
        Of inputs of the graph, by name; 0 where missing.
    arranged
        Names of tensors made by permutation, by what they hold.
    """

    values: dict[str, Value]
    opset: int
    batch: int | None
    operations: list[Operation] = dataclasses.field(default_factory=list)
    tensors: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    channels_first: dict[str, bool] = dataclasses.field(default_factory=dict)
    inputs: dict[str, Input] = dataclasses.field(default_factory=dict)
    constants: dict[str, NDArray[np.int32]] = dataclasses.field(default_factory=dict)
    last_steps: dict[str, Value] = dataclasses.field(default_factory=dict)
    batch_axes: dict[str, int] = dataclasses.field(default_factory=dict)
    arranged: dict[tuple[object, ...], str] = dataclasses.field(default_factory=dict)

    def is_open(self, value: Integers) -> bool:
        """Whether no operation has said yet what the columns of this input are."""
        return value.tensor not in self.tensors

    def as_matrix(self, value: Integers) -> None:
        """Make the last dimension of an open input its columns."""
        rows = math.prod(value.shape[:-1])
        self.place(value.tensor, Tensor(rows, 1, value.shape[-1], True).of_type(value.dtype), channels_first=False)

    def as_image(self, value: Integers) -> None:
        """Make the first of an open input's two or three dimensions its channels."""
        channels, *plane = value.shape
        height, width = (1, *plane) if len(plane) == 1 else plane
        self.place(value.tensor, Tensor(height, width, channels, True).of_type(value.dtype), channels_first=True)

    def place(self, name: str, tensor: Tensor, channels_first: bool) -> None:
        """Say what a tensor of the network is."""
        self.tensors[name], self.channels_first[name] = tensor, channels_first

    def place_open(self, value: Integers) -> None:
        """Make an open input an image where it has an image's dimensions, and otherwise a matrix."""
        if self.is_open(value):
            (self.as_image if len(value.shape) == 3 else self.as_matrix)(value)

    def image_shape(self, name: str) -> tuple[int, ...] | None:
        """Channels, height and width of an image; ``None`` where the tensor is a matrix."""
        tensor = self.tensors[name]
        return (tensor.channels, tensor.height, tensor.width) if self.channels_first[name] else None

    def constant(self, name: str, array: NDArray[np.integer], like: str, channels_first: bool) -> None:
        """A tensor of constants in the shape of tensor ``like``; ``array`` in the order in which the graph sees it."""
        other = self.tensors[like]
        rows = array.astype(np.int32)
        if channels_first:
            rows = rows.reshape(other.channels, other.positions).T
        self.constants[name] = np.ascontiguousarray(rows).reshape(other.height, other.width, other.channels)
        self.place(name, other.of_type(array.dtype.name), channels_first)

    def input_ports(self) -> tuple[Port, ...]:
        """What the host gives of what operations use."""
        used = {source for operation in self.operations for source in operation.sources}
        return tuple(
            Port(
                HostTensor(
                    name=item.name,
                    dtype=item.dtype,
                    shape=item.shape,
                    columns=self.tensors[tensor].channels,
                    stored=item.stored,
                    scale=None if item.scale is None else (item.scale,),
                    zero_point=item.zero_point,
                    channels_first=self.channels_first[tensor],
                    batch_axis=self.batch_axes.get(item.name, 0),
                ),
                tensor,
            )
            for tensor, item in self.inputs.items()
            if tensor in used
        )

    def add(self, operation: Operation, tensor: Tensor, channels_first: bool) -> None:
        """Append a finished operation that makes ``tensor``."""
        self.operations.append(operation)
        self.place(operation.target, tensor, channels_first)

    def add_lookup(self, node: str, value: Integers, target: str, table: NDArray[np.integer]) -> Integers:
        """The bytes of ``value`` through a table of int8 or uint8; ``value`` itself where nothing changes."""
        dtype = table.dtype.name
        if dtype == value.dtype and (byte_table(table) == np.arange(256)).all():
            return value
        self.place_open(value)
        tensor = self.tensors[value.tensor].of_type(dtype)
        self.add(lookup(node, value.tensor, target, byte_table(table)), tensor, self.channels_first[value.tensor])
        return Integers(target, value.shape, dtype)

    def close_sums(self, sums: Sums, target: str) -> None:
        """Finish an operation whose results are the sums themselves."""
        tensor = dataclasses.replace(sums.tensor, signed=True, item=4)
        self.add(dataclasses.replace(sums.operation, target=target), tensor, sums.channels_first)

    def close(self, sums: Sums, target: str, scale: np.float32, zero_point: int, dtype: str) -> Integers:
        """Finish an operation with the quantization of its results.

        Raises
        ------
        ModelError
            A resulting scale is no normal number.
        """
        operation, name = sums.operation, sums.operation.name
        low, high = quantized_limits(sums.low, sums.high, scale, zero_point, dtype)
        with np.errstate(over="ignore", under="ignore"):
            factors = [normal(np.asarray(np.abs(item) / np.float32(scale), np.float32)) for item in sums.scales]
        for factor in factors:
            check_scale(name, "input scale × weight scale ÷ output scale", factor)
        result = Result(factors[0], zero_point, low, high)
        changes = {}
        match operation:
            case Convolution():
                result = dataclasses.replace(result, scale=np.broadcast_to(factors[0], operation.bias.shape).copy())
            case Pooling():
                changes = {"input_scale": np.float32(sums.scales[0]), "output_scale": np.float32(scale)}
            case Combination(multiplies=False) if self._has_words(operation, dtype):
                # Two int16 tensors have too many pairs to look at, and what is subtracted has a negative scale.
                first, second = (np.copysign(*pair) for pair in zip(factors, sums.scales, strict=True))
                result = dataclasses.replace(result, scale=first)
                changes = {"second_scale": np.float32(second)}
            case Combination(multiplies=False):
                first, second = sum_scales(_quantized_sum(sums, operation, np.float32(scale), zero_point, dtype))
                result = dataclasses.replace(result, scale=np.asarray(first))
                changes = {"second_scale": second}
        tensor = sums.tensor.of_type(dtype)
        names = [f"{target} before pooling {index}" for index in range(len(sums.pooling))] + [target]
        operation = dataclasses.replace(operation, target=names[0], result=result, **changes)
        self.add(operation, tensor, sums.channels_first)
        for window, (source, pooled) in zip(sums.pooling, itertools.pairwise(names), strict=True):
            self.add_maximum(name, source, pooled, window)
        return Integers(target, sums.shape, dtype)

    def _has_words(self, operation: Operation, dtype: str) -> bool:
        """Whether a source of an operation or its result is int16."""
        return dtype == "int16" or any(self.tensors[name].is_wide for name in operation.sources)

    def add_maximum(self, node: str, source: str, target: str, window: Window) -> None:
        """Append a maximum over windows of an image."""
        tensor = self.tensors[source]
        height, width = window.outputs(tensor.height, tensor.width)
        limits = (-(1 << 15), (1 << 15) - 1) if tensor.is_wide else byte_limits(tensor.signed)
        operation = Pooling(
            name=node,
            sources=(source,),
            target=target,
            result=Result(np.ones((), np.float32), 0, *limits),
            window=window,
            maximum=True,
            input_signed=tensor.signed,
        )
        self.add(operation, dataclasses.replace(tensor, height=height, width=width), channels_first=True)


def _quantized_sum(sums: Sums, operation: Combination, scale: np.float32, zero_point: int, dtype: str) -> QuantizedSum:
    signed = dtype == "int8"
    limits = quantized_limits(sums.low, sums.high, scale, zero_point, dtype)
    # ONNX Runtime has QLinearAdd, of three tensors of one type, and removes a Relu that limits nothing.
    is_fused = (
        not sums.is_difference and {*operation.input_signed, signed} == {signed} and limits == byte_limits(signed)
    )
    return QuantizedSum(
        scales=(np.float32(sums.scales[0]), np.float32(sums.scales[1])),
        zero_points=operation.zero_points,
        signed=operation.input_signed,
        scale=scale,
        zero_point=zero_point,
        limits=limits,
        is_fused=is_fused,
    )


def byte_limits(signed: bool) -> tuple[int, int]:
    """Smallest and largest value of int8 or uint8."""
    return (-128, 127) if signed else (0, 255)


def quantized_limits(low: float, high: float, scale: np.float32, zero_point: int, dtype: str) -> tuple[int, int]:
    """The bytes of two real limits."""
    lower, upper = (int(quantize(np.asarray(limit, np.float32), scale, zero_point, dtype)) for limit in (low, high))
    return lower, upper


def per_column(node: str, what: str, values: NDArray[Any], outputs: int) -> NDArray[Any]:
    """``values`` as a scalar or one for each of ``outputs`` columns.

    Raises
    ------
    ModelError
        There is another number of values.
    """
    if values.size == 1:
        return values.reshape(())
    if values.size != outputs:
        raise ModelError(f"node {node!r}: {what} must have 1 or {outputs} values, not {values.size}")
    return values.reshape(outputs)
