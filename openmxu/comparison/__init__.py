"""A quantized model in float, in ONNX Runtime's integers and on the device, side by side."""

from openmxu.comparison.comparison import Comparison, compare
from openmxu.comparison.difference import Difference
from openmxu.comparison.layers import LayerResult, compare_layers

__all__ = ["Comparison", "Difference", "LayerResult", "compare", "compare_layers"]
