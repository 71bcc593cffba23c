"""Random quantized ONNX models with ONNX Runtime's results for them."""

from scripts.random_models.families import FAMILIES, Family
from scripts.random_models.graph import Case, Network
from scripts.random_models.models import make_model, random_bytes, reference, reference_outputs
from scripts.random_models.network import random_network

__all__ = [
    "FAMILIES",
    "Case",
    "Family",
    "Network",
    "make_model",
    "random_bytes",
    "random_network",
    "reference",
    "reference_outputs",
]
