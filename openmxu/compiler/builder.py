"""The network under construction, and the arithmetic that turns quantization parameters into layers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError, UnsupportedOperatorError
from openmxu.compiler.network import DenseLayer
from openmxu.compiler.values import Integers, Sums, Value
from openmxu.host_tensor import quantize

if TYPE_CHECKING:
    import onnx

__all__ = ["Builder", "check_scale", "node_name", "per_column", "quantized_limits"]

_SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal


def node_name(node: onnx.NodeProto) -> str:
    """The node's name, or its first output's where it has none."""
    return node.name or (node.output[0] if node.output else "") or "unnamed"


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


@dataclasses.dataclass
class Builder:
    """What the importer knows so far.

    Attributes
    ----------
    values
        Of every tensor made so far, by name.
    opset
        Version of the model's operators.
    batch
        The input's fixed batch, or ``None``.
    layers
        Finished layers.
    input_quantization
        dtype, scale and zero point of the QuantizeLinear that the host does.
    """

    values: dict[str, Value]
    opset: int
    batch: int | None
    layers: list[DenseLayer] = dataclasses.field(default_factory=list)
    input_quantization: tuple[str, tuple[float, ...], int] | None = None

    def start_sums(
        self,
        node: str,
        rows: Integers,
        zero_point: int,
        weights: NDArray[np.integer],
        weight_zero_point: NDArray[np.integer],
        scale: NDArray[np.float32] | None,
    ) -> Sums:
        """The sums of integers times weights, ``weights`` of shape (K, N).

        Raises
        ------
        ModelError
            Shapes do not fit, or a matrix is empty.
        """
        if weights.ndim != 2 or 0 in weights.shape:
            raise ModelError(f"node {node!r}: the weights must be a matrix that is not empty, not {weights.shape}")
        if rows.shape[-1] != weights.shape[0]:
            raise ModelError(
                f"node {node!r}: input rows have {rows.shape[-1]} values, but the weights' shape is {weights.shape}"
            )
        outputs = weights.shape[1]
        zero_points = per_column(node, "the weight zero point", weight_zero_point, outputs)
        return Sums(
            shape=(*rows.shape[:-1], outputs),
            node=node,
            input_signed=rows.dtype == "int8",
            input_zero_point=zero_point,
            weights=weights.astype(np.int16) - zero_points.astype(np.int16),
            bias=np.zeros(outputs, np.int32),
            scale=None if scale is None else per_column(node, "the weight scale", scale, outputs),
        )

    def close_sums(self, sums: Sums) -> None:
        """Finish a layer whose outputs are the sums themselves."""
        self.layers.append(
            DenseLayer(sums.node, sums.weights, sums.bias, None, sums.input_signed, sums.input_zero_point)
        )

    def close_layer(self, sums: Sums, scale: np.float32, zero_point: int, dtype: str) -> Integers:
        """Finish a layer with the quantization of its outputs.

        Raises
        ------
        ModelError
            The resulting scale is no normal number.
        """
        with np.errstate(over="ignore", under="ignore"):
            factors = np.broadcast_to(sums.scale / np.float32(scale), sums.bias.shape).astype(np.float32)
        check_scale(sums.node, "input scale × weight scale ÷ output scale", factors)
        low, high = quantized_limits(sums.low, sums.high, scale, zero_point, dtype)
        layer = DenseLayer(
            name=sums.node,
            weights=sums.weights,
            bias=sums.bias,
            scale=factors,
            input_signed=sums.input_signed,
            input_zero_point=sums.input_zero_point,
            zero_point=zero_point,
            minimum=low,
            maximum=high,
        )
        self.layers.append(layer)
        return Integers(sums.shape, dtype)

    def clamp_layer(self, node: str, operator: str, low: int, high: int) -> None:
        """Limit the bytes of the last layer; ``high`` wins where limits contradict, as in ONNX.

        Raises
        ------
        UnsupportedOperatorError
            There is no layer yet.
        """
        if not self.layers:
            raise UnsupportedOperatorError(node, operator, "supported after a dense layer, not on the model's input")
        layer = self.layers[-1]
        minimum, maximum = (min(max(limit, low), high) for limit in (layer.minimum, layer.maximum))
        self.layers[-1] = dataclasses.replace(layer, minimum=minimum, maximum=maximum)


def quantized_limits(low: float, high: float, scale: np.float32, zero_point: int, dtype: str) -> tuple[int, int]:
    """The bytes of two real limits."""
    lower, upper = (int(quantize(np.asarray(limit, np.float32), scale, zero_point, dtype)) for limit in (low, high))
    return lower, upper


def per_column(node: str, what: str, values: NDArray[np.generic], outputs: int) -> NDArray[np.generic]:
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
