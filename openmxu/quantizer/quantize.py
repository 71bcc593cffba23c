"""From a float model and calibration data to a quantized model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["ACTIVATIONS", "quantize"]

ACTIVATIONS = ("uint8", "int8")
"""Types that activations can have."""


def quantize(
    float_model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    calibration_data: NDArray[Any] | Mapping[str, NDArray[Any]],
    *,
    activations: str = "uint8",
) -> onnx.ModelProto:
    """Quantize a float model: DequantizeLinear and QuantizeLinear around every operator that can be quantized.

    ONNX Runtime's optimizer and static quantizer do the work: batch normalization goes into the convolution before it;
    weights become int8 with a scale for each output channel, biases int32; the range of every activation is that on the
    calibration data. A BatchNormalization of feature maps that no convolution took in becomes a depthwise convolution
    of one position. Operators that only the host can do stay as they are, in float32, at the edges of the network: a
    BatchNormalization of an input, and Softmax, LogSoftmax, ArgMax and TopK after everything else. So does what is in
    the bodies of If, Loop and Scan. Initial states of recurrent cells that are zeros are left out.

    Parameters
    ----------
    float_model
        Path of an ONNX file, its bytes, or the loaded model; it is not changed. Opset 7 or newer, float32.
    calibration_data
        Typical inputs, some dozen or more: the only input or every input by name, each of shape (any batch, *shape). A
        model with a fixed batch needs a multiple of it. Other dimensions that the model leaves open get their lengths.
    activations
        Type of the activations, one of :data:`ACTIVATIONS`.

    Returns
    -------
    A model of opset 13 or newer for :func:`openmxu.compile` and ONNX Runtime, with the inputs and outputs of the float
    model.

    Raises
    ------
    ModelError
        The model is damaged or invalid, is quantized already, or ONNX Runtime cannot run or quantize it.
    InputError
        The calibration data does not fit the model.
    ValueError
        ``activations`` is no known type.
    ImportError
        ONNX Runtime is not installed.
    OSError
        The file cannot be read.
    """
    if activations not in ACTIVATIONS:
        raise ValueError(f"activations must be one of {', '.join(ACTIVATIONS)}, not {activations!r}")
    _require_onnxruntime()
    # They import onnx, which takes a while.
    from openmxu.quantizer.calibration import calibration_batches
    from openmxu.quantizer.preparation import prepare
    from openmxu.quantizer.real_results import keep_results_real, nodes_behind_products
    from openmxu.quantizer.recurrent import calibrate_cells, output_overrides, quantize_cells
    from openmxu.quantizer.static import quantize_static

    prepared = prepare(float_model, calibration_data)
    batches = calibration_batches(prepared, calibration_data)
    cells = calibrate_cells(prepared, batches)
    behind = nodes_behind_products(prepared.graph) if cells else []
    overrides = output_overrides(prepared.graph, cells)
    quantized = quantize_static(prepared, batches, activations, overrides, behind)
    if cells:
        quantize_cells(quantized, cells, activations)
        keep_results_real(quantized, behind)
    if not any(node.op_type == "QuantizeLinear" for node in quantized.graph.node):
        raise ModelError("the model has no operator that ONNX Runtime quantizes")
    return quantized


def _require_onnxruntime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        raise ImportError("quantizing needs ONNX Runtime: install it with: pip install 'openmxu[demo]'") from None
