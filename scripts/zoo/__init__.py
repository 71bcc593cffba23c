"""Real networks from packages on PyPI: quantized, compiled and run, and compared with ONNX Runtime."""
