"""A quantized model in float, in ONNX Runtime's integers and on the device, side by side."""

from openmxu.comparison.comparison import Comparison, compare
from openmxu.comparison.layers import LayerResult, compare_layers

__all__ = ["Comparison", "LayerResult", "compare", "compare_layers"]
