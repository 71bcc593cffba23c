"""LSTM text classifier: 250 words, an embedding of 15,000 × 32 that the host looks up, LSTM 32, dense 1, sigmoid.

    python examples/text_lstm/network.py -o text_lstm.onnx            # the quantized model as a file
    python examples/text_lstm/network.py -o float.onnx --float        # the float model
    python examples/text_lstm/network.py --quantize                   # quantize it anew

``train.py`` makes the weights. The texts are random, with a rule behind them: see ``texts.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from examples.recurrent_layers import cell_constants, make_model, read_weights
from examples.recurrent_network import RecurrentNetwork
from examples.text_lstm.texts import STEPS, random_texts

__all__ = ["NETWORK"]


class _TextClassifier(RecurrentNetwork):
    """Input ``words``: int64 (batch, 250). Output ``opinion``: float32 (batch, 1), 0 to 1."""

    folder = Path(__file__).parent
    source, result = "words", "opinion"
    length = piece = STEPS

    def float_model(self, steps: int | None = None) -> onnx.ModelProto:
        weights = read_weights(np.load(self.folder / "weights.npz", allow_pickle=False))
        w, r, b = cell_constants(weights, "lstm")
        nodes = [
            helper.make_node("Gather", ["embedding", "words"], ["vectors"], name="embedding"),
            helper.make_node("Transpose", ["vectors"], ["steps"], name="transpose", perm=[1, 0, 2]),
            helper.make_node("LSTM", ["steps", "W", "R", "B"], ["", "state"], name="lstm", hidden_size=r.shape[2]),
            helper.make_node("Squeeze", ["state", "directions"], ["summary"], name="squeeze"),
            helper.make_node("Gemm", ["summary", "D", "d"], ["logit"], name="dense", transB=1),
            helper.make_node("Sigmoid", ["logit"], ["opinion"], name="sigmoid"),
        ]
        constants = {
            "embedding": weights["embedding.weight"],
            "W": w,
            "R": r,
            "B": b,
            "directions": np.array([0]),
            "D": weights["dense.weight"],
            "d": weights["dense.bias"],
        }
        return make_model(
            "text_lstm",
            nodes,
            [helper.make_tensor_value_info("words", TensorProto.INT64, ["batch", steps or STEPS])],
            [helper.make_tensor_value_info("opinion", TensorProto.FLOAT, ["batch", 1])],
            constants,
        )

    def sequences(self, count: int, seed: int = 0) -> NDArray[np.int64]:
        return random_texts(count, seed=10_000 + seed)[0]


NETWORK = _TextClassifier()

if __name__ == "__main__":
    NETWORK.main(__doc__)
