"""The ONNX operators: what each becomes in the network, and the tensors they pass to each other."""
