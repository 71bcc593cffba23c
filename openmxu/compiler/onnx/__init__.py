"""From ONNX files to the network: models are read, checked, and walked node by node."""
