"""Float ONNX models to quantized ones, with ONNX Runtime's quantizer (extra ``demo``)."""

from openmxu.quantizer.quantize import ACTIVATIONS, quantize

__all__ = ["ACTIVATIONS", "quantize"]
