"""Character transformer: 96 characters, two blocks of 128 channels with four heads, a window of 64 characters; trained.

    python examples/char_transformer/network.py -o char_transformer.onnx  # the quantized model as a file
    python examples/char_transformer/network.py -o float.onnx --float     # the float model
    python examples/char_transformer/network.py --quantize                # quantize it anew
    python examples/char_transformer/generate.py                          # let it write

The model takes one character, and the keys and values of the 63 characters before it; it gives back those of the last
63. Before the first character they are zeros, which the network has learned to live with. ``train.py`` makes the
weights, from the text of the character LSTM.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openmxu.exact_session import exact_session

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from examples.char_lstm.characters import ALPHABET, encode, learned_text
from examples.transformer_layers import Graph
from examples.transformer_network import TransformerNetwork

__all__ = ["BLOCKS", "CHANNELS", "HEADS", "NETWORK", "WEIGHTS", "WIDE", "WINDOW"]

WINDOW = 64
CHANNELS, HEADS, WIDE, BLOCKS = 128, 4, 256, 2
WEIGHTS = Path(__file__).with_name("weights.npz")
_CALIBRATION = 12
"""Sequences, of twice the window."""


class _Writer(TransformerNetwork):
    """Inputs ``character``: int64 (batch, 1), and for each block ``keys.0``, ``values.0``, …: float32 (batch, 4, 63,
    32). Outputs ``probabilities``: float32 (batch, 96), and ``next_keys.0``, ``next_values.0``, …"""

    folder = Path(__file__).parent

    @property
    def states(self) -> dict[str, str]:
        """Inputs that are kept from character to character, each with the output that is its next value."""
        names = [f"{kind}.{number}" for number in range(BLOCKS) for kind in ("keys", "values")]
        return {name: f"next_{name}" for name in names}

    def beginning(self, batch: int = 1) -> dict[str, NDArray[np.float32]]:
        """States before the first character."""
        shape = (batch, HEADS, WINDOW - 1, CHANNELS // HEADS)
        return {name: np.zeros(shape, np.float32) for name in self.states}

    def float_model(self) -> onnx.ModelProto:
        graph = Graph(self.weights(), HEADS)
        embedding = graph.constant("embedding", graph.weight("embedding.weight"))
        token = graph.node("Gather", [embedding, "character"], "embedded", axis=0)
        for number in range(BLOCKS):
            name = f"blocks.{number}"
            normal = graph.normalized(f"{name}.first", token)
            queries = graph.query(name, normal, 1, CHANNELS // HEADS)
            keys, values = (self._kept(graph, name, kind, normal, number) for kind in ("key", "value"))
            turned = graph.node("Transpose", [keys], f"{name}.turned_keys", perm=[0, 1, 3, 2])
            distances = graph.constant(f"{name}.distances", graph.weight(f"distances.{number}")[:, np.newaxis])
            attended = graph.attended(name, queries, turned, values, 1, distances)
            token = graph.widened(name, graph.sum(f"{name}.sum", token, attended))
        last = graph.normalized("last", token)
        weights = graph.constant("characters.weights", graph.weight("characters.weight").T)
        scores = graph.node("MatMul", [last, weights], "scores")
        flat = graph.node("Reshape", [scores, graph.constant("flat", np.array([0, len(ALPHABET)]))], "flat_scores")
        graph.node("Softmax", [flat], "probabilities", axis=-1)
        state = ["batch", HEADS, WINDOW - 1, CHANNELS // HEADS]
        return graph.model(
            "char_transformer",
            [
                helper.make_tensor_value_info("character", TensorProto.INT64, ["batch", 1]),
                *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in self.states),
            ],
            [
                helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", len(ALPHABET)]),
                *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in self.states.values()),
            ],
        )

    def _kept(self, graph: Graph, block: str, kind: str, normal: str, number: int) -> str:
        """Keys or values of the window: those that were kept, and that of the new character."""
        new = graph.heads_of(f"{block}.{kind}", graph.dense(f"{block}.{kind}", normal), 1, [0, 2, 1, 3])
        kept = f"{kind}s.{number}"
        window = graph.node("Concat", [kept, new], f"{block}.{kind}s", axis=2)
        limits = [
            graph.constant(name, np.array([value])) for name, value in (("from", 1), ("to", WINDOW), ("tokens", 2))
        ]
        graph.node("Slice", [window, *limits], f"next_{kept}")
        return window

    def inputs(self, count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Random characters, and states from 0."""
        characters = np.random.default_rng(seed).integers(0, len(ALPHABET), (count, 1))
        return {"character": characters, **self.beginning(count)}

    def calibration_data(self) -> Mapping[str, NDArray[Any]]:
        """The states that the float network has while it reads some text, and a last character after which all of the
        window is there as a state."""
        text = encode(learned_text())
        starts = np.random.default_rng(77).integers(0, len(text) - 2 * WINDOW, _CALIBRATION)
        windows = np.stack([text[start : start + 2 * WINDOW] for start in starts])
        session = exact_session(self.float_model().SerializeToString())
        names = ["probabilities", *self.states.values()]
        states = self.beginning(len(windows))
        seen: dict[str, list[NDArray[Any]]] = {"character": [], **{name: [] for name in states}}
        for step in range(windows.shape[1]):
            given = {"character": windows[:, step : step + 1], **states}
            results = dict(zip(names, session.run(names, given), strict=True))
            states = {name: results[following] for name, following in self.states.items()}
            if step % 8 == 0 or step >= windows.shape[1] - 2:
                for name, value in given.items():
                    seen[name].append(value)
        return {name: np.concatenate(values) for name, values in seen.items()}


NETWORK = _Writer()

if __name__ == "__main__":
    NETWORK.main(__doc__)
