"""Character LSTM: 96 characters, embedding 64, two LSTM layers of 128, dense 96, Softmax: the next character.

    python examples/char_lstm/network.py -o char_lstm.onnx            # the quantized model as a file
    python examples/char_lstm/network.py -o float.onnx --float        # the float model
    python examples/char_lstm/network.py --quantize                   # quantize it anew
    python examples/char_lstm/generate.py                             # let it write

The model takes one character and the states of both layers; compiled with ``states=NETWORK.states``, the states stay in
the unified buffer, and text comes step by step. ``train.py`` makes the weights, from documents of this repository as
they once were.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from examples.char_lstm.characters import ALPHABET, encode, learned_text, unseen_text
from examples.recurrent_layers import cell_constants, make_model, read_weights
from examples.recurrent_network import RecurrentNetwork

__all__ = ["NETWORK", "UNITS"]

UNITS = 128


class _Writer(RecurrentNetwork):
    """Inputs ``characters``: int64 (batch, 1), and the states ``h1``, ``c1``, ``h2``, ``c2``: float32 (1, batch, 128).
    Outputs ``probabilities``: float32 (batch, 96), and ``next_h1`` to ``next_c2``."""

    folder = Path(__file__).parent
    source, result = "characters", "probabilities"
    length, piece = 96, 1
    states: ClassVar[Mapping[str, str]] = {f"{kind}{layer}": f"next_{kind}{layer}" for layer in (1, 2) for kind in "hc"}

    def float_model(self, steps: int | None = None) -> onnx.ModelProto:
        weights = read_weights(np.load(self.folder / "weights.npz", allow_pickle=False))
        nodes = [
            helper.make_node("Gather", ["embedding", "characters"], ["vectors"], name="embedding"),
            helper.make_node("Transpose", ["vectors"], ["steps1"], name="transpose", perm=[1, 0, 2]),
        ]
        constants = {"embedding": weights["embedding.weight"], "first": np.array([0]), "directions": np.array([1])}
        for layer in (1, 2):
            names = [f"{name}{layer}" for name in "WRB"]
            constants |= dict(zip(names, cell_constants(weights, "lstm", layer - 1), strict=True))
            made = [f"sequence{layer}" if layer == 1 else "", f"next_h{layer}", f"next_c{layer}"]
            given = [f"steps{layer}", *names, "", f"h{layer}", f"c{layer}"]
            nodes.append(helper.make_node("LSTM", given, made, name=f"lstm{layer}", hidden_size=UNITS))
            if layer == 1:
                nodes.append(helper.make_node("Squeeze", ["sequence1", "directions"], ["steps2"], name="squeeze1"))
        nodes += [
            helper.make_node("Squeeze", ["next_h2", "first"], ["summary"], name="squeeze2"),
            helper.make_node("Gemm", ["summary", "D", "d"], ["scores"], name="dense", transB=1),
            helper.make_node("Softmax", ["scores"], ["probabilities"], name="softmax", axis=1),
        ]
        constants |= {"D": weights["dense.weight"], "d": weights["dense.bias"]}
        state = [1, "batch", UNITS]
        return make_model(
            "char_lstm",
            nodes,
            [
                helper.make_tensor_value_info("characters", TensorProto.INT64, ["batch", steps or self.piece]),
                *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in self.states),
            ],
            [
                helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", len(ALPHABET)]),
                *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in self.states.values()),
            ],
            constants,
        )

    def sequences(self, count: int, seed: int = 0) -> NDArray[np.int64]:
        """Random windows of text that the network was not trained on."""
        return _windows(unseen_text(), count, self.length, seed)

    def calibration_sequences(self) -> NDArray[np.int64]:
        """Random windows of text that it was trained on."""
        return _windows(learned_text(), self.calibration, self.length, seed=0)


def _windows(text: str, count: int, length: int, seed: int) -> NDArray[np.int64]:
    """Random pieces of a text, (count, length)."""
    numbers = encode(text)
    starts = np.random.default_rng(seed).integers(0, len(numbers) - length, count)
    return np.stack([numbers[start : start + length] for start in starts])


NETWORK = _Writer()

if __name__ == "__main__":
    NETWORK.main(__doc__)
