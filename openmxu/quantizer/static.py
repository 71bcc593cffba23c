"""ONNX Runtime's static quantizer."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import onnx
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.onnx.model_file import first_line
from openmxu.quantizer.preparation import host_nodes

__all__ = ["quantize_static"]

_logger = logging.getLogger(__name__)


def quantize_static(
    model: onnx.ModelProto,
    batches: Sequence[Mapping[str, NDArray[Any]]],
    activations: str,
    overrides: Mapping[str, list[dict[str, object]]],
    excluded: Sequence[str],
) -> onnx.ModelProto:
    """Calibrate and quantize a prepared model; operators for the host stay in float32.

    Parameters
    ----------
    overrides
        Quantization of tensors by name, as ONNX Runtime's ``TensorQuantOverrides``.
    excluded
        Names of nodes that stay as they are, beside those that only the host can compute.

    Raises
    ------
    ModelError
        ONNX Runtime cannot quantize it.
    """
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        """Feeds batches to ONNX Runtime, one after the other."""

        def __init__(self) -> None:
            self._waiting = iter(batches)

        def get_next(self) -> Mapping[str, NDArray[Any]] | None:
            return next(self._waiting, None)

    types = {"uint8": quantization.QuantType.QUInt8, "int8": quantization.QuantType.QInt8}
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder, _quiet():
        path = Path(folder) / "quantized.onnx"
        try:
            quantization.quantize_static(
                model,
                path,
                Reader(),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                activation_type=types[activations],
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=[*host_nodes(model.graph), *excluded],
                extra_options={"TensorQuantOverrides": dict(overrides)} if overrides else {},
            )
        # The quantizer raises many classes: ValueError, AssertionError, KeyError, exceptions from C++.
        except Exception as error:
            raise ModelError(f"ONNX Runtime cannot quantize the model: {first_line(error)}") from error
        return onnx.load(path)


_FATAL = 4
"""The severity of ONNX Runtime's messages above those of errors, which are raised as exceptions as well."""


@contextmanager
def _quiet() -> Iterator[None]:
    """A block in which ONNX Runtime's quantizer writes nothing: its messages to Python's root logger become debug
    messages of this module, and its calibration's sessions are silent."""
    import onnxruntime
    from onnxruntime.quantization.calibrate import CalibraterBase

    theirs = Path(onnxruntime.__file__).parent
    root, unused = logging.getLogger(), logging.NullHandler()

    def passes(record: logging.LogRecord) -> bool:
        if not Path(record.pathname).is_relative_to(theirs):
            return True
        _logger.debug("ONNX Runtime: %s", record.getMessage())
        return False

    def create_silent_session(calibrater: Any) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _FATAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        calibrater.infer_session = onnxruntime.InferenceSession(
            calibrater.augmented_model_path, sess_options=options, providers=calibrater.execution_providers
        )

    root.addFilter(passes)
    # logging.warning() would give a root logger without handlers one that writes to stderr from then on.
    root.addHandler(unused)
    try:
        with mock.patch.object(CalibraterBase, "create_inference_session", create_silent_session):
            yield
    finally:
        root.removeHandler(unused)
        root.removeFilter(passes)
