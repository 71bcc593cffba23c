"""Vision transformer: 28 × 28 digits as 49 patches of 4 × 4, three blocks of 64 channels with four heads; trained.

    python examples/vision_transformer/network.py -o vit.onnx            # the quantized model as a file
    python examples/vision_transformer/network.py -o float.onnx --float  # the float model
    python examples/vision_transformer/network.py --quantize             # quantize it anew

``train.py`` makes the weights. On the device are all matrix products, those of attention included, and Gelu; the host
normalizes, adds what goes around a block, and computes Softmax.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from examples.mnist.network import unseen_digits
from examples.transformer_layers import Graph
from examples.transformer_network import TransformerNetwork

__all__ = ["BLOCKS", "CHANNELS", "HEADS", "NETWORK", "PATCH", "TOKENS", "WEIGHTS", "WIDE"]

PATCH, TOKENS = 4, 49
CHANNELS, HEADS, WIDE, BLOCKS = 64, 4, 128, 3
WEIGHTS = Path(__file__).with_name("weights.npz")


class _VisionTransformer(TransformerNetwork):
    """Input ``image``: float32 (batch, 1, 28, 28), 0 to 1. Output ``scores``: float32 (batch, 10)."""

    folder = Path(__file__).parent

    def float_model(self) -> onnx.ModelProto:
        graph = Graph(self.weights(), HEADS)
        side = 28 // PATCH
        parts = graph.constant("into patches", np.array([0, side, PATCH, side, PATCH]))
        rows = graph.constant("into rows", np.array([0, TOKENS, PATCH * PATCH]))
        apart = graph.node("Reshape", ["image", parts], "apart")
        turned = graph.node("Transpose", [apart], "turned", perm=[0, 1, 3, 2, 4])
        tokens = graph.dense("patches", graph.node("Reshape", [turned, rows], "parts"))
        tokens = graph.sum("placed", tokens, graph.constant("places", graph.weight("places")))
        for number in range(BLOCKS):
            name = f"blocks.{number}"
            normal = graph.normalized(f"{name}.first", tokens)
            queries = graph.query(name, normal, TOKENS, CHANNELS // HEADS)
            keys = graph.heads_of(f"{name}.key", graph.dense(f"{name}.key", normal), TOKENS, [0, 2, 3, 1])
            values = graph.heads_of(f"{name}.value", graph.dense(f"{name}.value", normal), TOKENS, [0, 2, 1, 3])
            attended = graph.attended(name, queries, keys, values, TOKENS)
            tokens = graph.widened(name, graph.sum(f"{name}.sum", tokens, attended))
        last = graph.normalized("last", tokens)
        mean = graph.node("ReduceMean", [last, graph.constant("over tokens", np.array([1]))], "mean", keepdims=0)
        graph.node("MatMul", [mean, graph.constant("classes.weights", graph.weight("classes.weight").T)], "scores")
        return graph.model(
            "vision_transformer",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 28, 28])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        )

    def calibration_data(self) -> NDArray[np.float32]:
        """Digits that the network was not trained on."""
        return unseen_digits()[0][:64]

    def inputs(self, count: int, seed: int = 0) -> NDArray[np.float32]:
        """Digits that the network was not trained on, again and again if need be."""
        images, _ = unseen_digits()
        return images[np.random.default_rng(seed).permutation(max(count, len(images)))[:count] % len(images)]

    def unseen(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All of them, and their labels."""
        return unseen_digits()


NETWORK = _VisionTransformer()

if __name__ == "__main__":
    NETWORK.main(__doc__)
