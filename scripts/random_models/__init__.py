"""Random quantized ONNX models with what ONNX Runtime computes for them."""

from scripts.random_models.families import FAMILIES, Family
from scripts.random_models.graph import Case, make_model, random_bytes, reference, reference_outputs

__all__ = ["FAMILIES", "Case", "Family", "make_model", "random_bytes", "reference", "reference_outputs"]
