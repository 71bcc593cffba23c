"""Models straight from the exporters of scikit-learn, PyTorch and Keras: quantized, compiled, run and compared."""
