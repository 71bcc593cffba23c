"""A network on a device, as a whole and layer by layer, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

import openmxu
from openmxu.device import Device
from scripts.networks.layers import LayerModel, layer_models, with_all_outputs
from scripts.random_models import reference_outputs

__all__ = ["LayerComparison", "NetworkComparison", "compare_layers", "compare_network"]


@dataclass(frozen=True)
class NetworkComparison:
    """Outputs of a whole network.

    Attributes
    ----------
    inputs, outputs
        Numbers of them.
    differing
        Outputs that are not ONNX Runtime's.
    equal_classes
        Inputs for which the largest output is the same.
    results, expected
        The outputs of the device and of ONNX Runtime.
    """

    inputs: int
    outputs: int
    differing: int
    equal_classes: int
    results: NDArray[np.generic]
    expected: NDArray[np.generic]


@dataclass(frozen=True)
class LayerComparison:
    """Results of one layer for ONNX Runtime's intermediates: their number, the number that differ, and the largest
    difference."""

    layer: LayerModel
    results: int
    differing: int
    largest: int

    @property
    def passed(self) -> bool:
        """Whether no result differs by more than the layer's class allows."""
        return self.largest <= (0 if self.layer.is_exact else 1)


def compare_network(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[np.generic]], device: Device, batch: int
) -> NetworkComparison:
    """Run a whole network."""
    program = openmxu.compile(model, device.config, batch=batch)
    (results,) = program.run(device, inputs).values()
    (expected,) = reference_outputs(model, inputs).values()
    return NetworkComparison(
        inputs=len(results),
        outputs=results.size,
        differing=int(np.count_nonzero(results != expected)),
        equal_classes=int((results.argmax(axis=-1) == expected.argmax(axis=-1)).sum()),
        results=results,
        expected=expected,
    )


def compare_layers(
    model: onnx.ModelProto, inputs: Mapping[str, NDArray[np.generic]], device: Device, batch: int
) -> list[LayerComparison]:
    """Run every layer alone, each with ONNX Runtime's intermediates as inputs."""
    layers = layer_models(model)
    names = list(dict.fromkeys(name for layer in layers for name in (*layer.inputs, layer.output)))
    tensors = reference_outputs(with_all_outputs(model, names), inputs)
    comparisons = []
    for layer in layers:
        program = openmxu.compile(layer.model, device.config, batch=batch)
        (results,) = program.run(device, {name: tensors[name] for name in layer.inputs}).values()
        apart = np.abs(results.astype(np.int64) - tensors[layer.output].astype(np.int64))
        comparisons.append(LayerComparison(layer, apart.size, int(np.count_nonzero(apart)), int(apart.max(initial=0))))
    return comparisons
