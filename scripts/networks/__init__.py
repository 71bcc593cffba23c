"""Comparing the example networks with ONNX Runtime: ``python -m scripts.networks``."""
