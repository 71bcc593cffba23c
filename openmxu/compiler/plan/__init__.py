"""The plan: how a network is cut to fit the memories, what is fused, and where tensors lie."""
