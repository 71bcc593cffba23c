"""Random weights that behave like trained ones: activations of every layer are spread, outputs tell inputs apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from examples.layers import Conv, Dense, Layer, Normalize, Residual, float_model
from openmxu.exact_session import exact_session

__all__ = ["seeded_parameters"]


def seeded_parameters(
    layers: Sequence[Layer], images: NDArray[np.float32], seed: int
) -> dict[str, NDArray[np.float32]]:
    """Weights for a network, layer by layer.

    Weights are normally distributed. Normalizations have the statistics of what reaches them for ``images``, so that
    they do what training makes them do; where a layer has a bias instead, weights and bias are scaled so that its sums
    have a standard deviation of 1.

    Parameters
    ----------
    images
        Typical inputs, (count, channels, height, width).
    """
    parameters: dict[str, NDArray[np.float32]] = {}
    _fill(layers, images, np.random.default_rng(seed), "", parameters)
    return parameters


def _fill(
    layers: Sequence[Layer],
    values: NDArray[np.float32],
    random: np.random.Generator,
    path: str,
    parameters: dict[str, NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Add the parameters of ``layers``; what they make of ``values``."""
    for number, layer in enumerate(layers):
        if isinstance(layer, Residual):
            parts = [(layer.body, f"{path}{number}.body."), (layer.shortcut, f"{path}{number}.shortcut.")]
            values = sum(_fill(part, values, random, inner, parameters) for part, inner in parts)
            continue
        own = _parameters(layer, values, random)
        parameters.update({f"{path}{number}.{kind}": array for kind, array in own.items()})
        values = _apply(layer, values, own)
    return values


def _apply(
    layer: Layer, values: NDArray[np.float32], parameters: dict[str, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """What one layer makes of ``values``."""
    named = {f"0.{kind}": array for kind, array in parameters.items()}
    model = float_model([layer], values.shape[1:], named, "layer")
    session = exact_session(model.SerializeToString())
    return session.run(None, {"image": values})[0]


def _parameters(
    layer: Layer, values: NDArray[np.float32], random: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    channels = values.shape[1]
    match layer:
        case Conv():
            weights = random.normal(size=(layer.outputs, channels, layer.kernel, layer.kernel)).astype(np.float32)
            weights /= np.float32(np.sqrt(channels) * layer.kernel)
            return _spread(layer, weights, values, random) if layer.bias else {"weight": weights}
        case Dense():
            weights = random.normal(size=(layer.outputs, channels)).astype(np.float32)
            return _spread(layer, weights, values, random)
        case Normalize():
            mean, deviation = _statistics(values)
            return {
                "weight": random.uniform(0.7, 1.3, channels).astype(np.float32),
                "bias": random.normal(0, 0.3, channels).astype(np.float32),
                "running_mean": mean,
                "running_var": deviation**2,
            }
    return {}


def _spread(
    layer: Layer, weights: NDArray[np.float32], values: NDArray[np.float32], random: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """Weights and bias with which the sums of each output have a standard deviation of 1, around almost 0."""
    outputs = len(weights)
    sums = _apply(layer, values, {"weight": weights, "bias": np.zeros(outputs, np.float32)})
    mean, deviation = _statistics(sums)
    bias = random.normal(0, 0.3, outputs).astype(np.float32) - mean / deviation
    return {"weight": weights / deviation.reshape(-1, *[1] * (weights.ndim - 1)), "bias": bias}


def _statistics(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel."""
    axes = (0, *range(2, values.ndim))
    return values.mean(axis=axes), np.maximum(values.std(axis=axes), np.float32(1e-3))
