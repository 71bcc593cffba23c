"""A quantized model on a device, beside ONNX Runtime's integers and the float model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from openmxu.comparison.difference import Difference
from openmxu.comparison.layers import LayerResult, compare_layers
from openmxu.compiler import CompileError
from openmxu.device import Device
from openmxu.program import InputError, Program
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.graph_runner import GraphRunner

__all__ = ["Comparison", "compare"]

_ELEMENTS = 16
"""Batch elements for which every layer is computed alone."""


@dataclass(frozen=True)
class Comparison:
    """The results of a model in up to three forms.

    Attributes
    ----------
    elements
        Batch elements.
    outputs, differing
        All numbers of all outputs, and those in which the device differs from ONNX Runtime.
    largest
        The largest difference.
    accuracy
        The share of labels that are the largest number of the first output, by form: ``float``, ``onnxruntime`` and
        ``device``. Empty without labels.
    layers
        Every layer of the device alone, in the order of the model; ``None`` if layers cannot be taken out.
    """

    elements: int
    outputs: int
    differing: int
    largest: float
    accuracy: Mapping[str, float]
    layers: tuple[LayerResult, ...] | None

    @property
    def first(self) -> LayerResult | None:
        """The first layer that differs."""
        return next((layer for layer in self.layers or () if layer.reason), None)

    @property
    def reason(self) -> str:
        """Why outputs differ; empty if none do."""
        if not self.differing:
            return ""
        if self.first is not None:
            return self.first.reason
        return "no layer alone differs: in between, the host rounds float32 elsewhere than ONNX Runtime"


def compare(
    model: onnx.ModelProto,
    program: Program,
    device: Device,
    inputs: NDArray[Any] | Mapping[str, NDArray[Any]],
    *,
    labels: NDArray[Any] | None = None,
    float_model: onnx.ModelProto | None = None,
) -> Comparison:
    """Compute a quantized model in several forms.

    Parameters
    ----------
    model, program
        The quantized model, and what it was compiled to.
    inputs
        As for :meth:`Program.run`.
    labels
        The right class of every batch element, as the index of the largest number in the first output: integers of the
        output's shape without its last dimension.
    float_model
        What ``model`` was quantized from. With it, layers have their ``sqnr``, and there is an accuracy in float.

    Raises
    ------
    InputError
        Inputs or labels do not fit.
    GraphError
        ONNX Runtime cannot compute a model.
    DeviceError
        The device fails.
    """
    given = program.check_inputs(inputs)
    ours = list(program.run(device, given).values())
    if labels is not None:
        _check_labels(labels, ours[0])
    wanted = _outputs(model, program, given)
    results = {"onnxruntime": wanted, "device": ours}
    if float_model is not None:
        results = {"float": _outputs(float_model, program, given), **results}
    difference = Difference.of(ours, wanted)
    return Comparison(
        elements=program.elements(dict(zip((spec.name for spec in program.outputs), ours, strict=True))),
        outputs=difference.outputs,
        differing=difference.differing,
        largest=difference.largest,
        accuracy={}
        if labels is None
        else {name: float((arrays[0].argmax(axis=-1) == labels).mean()) for name, arrays in results.items()},
        layers=_layers(model, program, given, float_model),
    )


def _check_labels(labels: NDArray[Any], scores: NDArray[Any]) -> None:
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != scores.shape[:-1]:
        shape = " × ".join(map(str, scores.shape[:-1]))
        raise InputError(f"labels must be integers of shape {shape}, not {labels.dtype} of shape {labels.shape}")


def _outputs(model: onnx.ModelProto, program: Program, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """ONNX Runtime's outputs, of as many elements at once as the model wants."""
    runner = GraphRunner(model.SerializeToString(), optimize=True)
    own = _batch(model, program.inputs)
    if own is None:
        return runner.run(inputs)
    axes = {spec.name: spec.batch_axis for spec in program.inputs}
    count = min(array.shape[axes[name]] for name, array in inputs.items())
    if count % own:
        raise InputError(f"the model has a batch of {own}, and {count} inputs are no multiple of it")
    parts = [runner.run(_sliced(inputs, axes, slice(start, start + own))) for start in range(0, count, own)]
    return [
        np.concatenate(arrays, axis=spec.batch_axis)
        for arrays, spec in zip(zip(*parts, strict=True), program.outputs, strict=True)
    ]


def _sliced(inputs: Mapping[str, NDArray[Any]], axes: Mapping[str, int], part: slice) -> dict[str, NDArray[Any]]:
    return {name: array[(slice(None),) * axes[name] + (part,)] for name, array in inputs.items()}


def _batch(model: onnx.ModelProto, inputs: tuple[ArraySpec, ...]) -> int | None:
    """The batch that a model wants, ``None`` if it takes any or has none."""
    specs = {spec.name: spec for spec in inputs if not spec.is_whole}
    for item in model.graph.input:
        if item.name in specs:
            dims = item.type.tensor_type.shape.dim
            return dims[specs[item.name].batch_axis].dim_value or None
    return None


def _layers(
    model: onnx.ModelProto,
    program: Program,
    inputs: Mapping[str, NDArray[Any]],
    float_model: onnx.ModelProto | None,
) -> tuple[LayerResult, ...] | None:
    if any(spec.is_whole for spec in program.inputs):
        return None
    axes = {spec.name: spec.batch_axis for spec in program.inputs}
    count = _batch(model, program.inputs) or _ELEMENTS
    try:
        return tuple(compare_layers(model, _sliced(inputs, axes, slice(count)), float_model))
    except CompileError:
        return None
