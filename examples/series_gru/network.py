"""GRU time series: 20 signals of a plant every quarter of an hour, GRU 512, dense 3, sigmoid: three alarms.

    python examples/series_gru/network.py -o series_gru.onnx          # the quantized model as a file
    python examples/series_gru/network.py -o float.onnx --float       # the float model
    python examples/series_gru/network.py --quantize                  # quantize it anew

Two weeks are 1,344 steps. The model takes 24 of them, six hours, and the state; compiled with
``states=NETWORK.states``, the state stays in the unified buffer from one piece to the next, so that a session runs
sequences of any length. ``model(steps=1344)`` is the same in one piece. ``train.py`` makes the weights, from signals
that ``plant.py`` invents.
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

from examples.recurrent_layers import cell_constants, make_model, read_weights
from examples.recurrent_network import RecurrentNetwork
from examples.series_gru.plant import ALARMS, SIGNALS, STEPS, measurements

__all__ = ["NETWORK"]

UNITS = 512


class _Watcher(RecurrentNetwork):
    """Inputs ``signals``: float32 (batch, 24, 20), about -3 to 3, and ``state``: float32 (1, batch, 512). Outputs
    ``alarms``: float32 (batch, 3), 0 to 1, and ``next_state``, like ``state``."""

    folder = Path(__file__).parent
    source, result = "signals", "alarms"
    length, piece = STEPS, 24
    states: ClassVar[Mapping[str, str]] = {"state": "next_state"}
    calibration = 16

    def float_model(self, steps: int | None = None) -> onnx.ModelProto:
        weights = read_weights(np.load(self.folder / "weights.npz", allow_pickle=False))
        w, r, b = cell_constants(weights, "gru")
        nodes = [
            helper.make_node("Transpose", ["signals"], ["steps"], name="transpose", perm=[1, 0, 2]),
            helper.make_node(
                "GRU",
                ["steps", "W", "R", "B", "", "state"],
                ["", "next_state"],
                name="gru",
                hidden_size=UNITS,
                linear_before_reset=1,
            ),
            helper.make_node("Squeeze", ["next_state", "directions"], ["summary"], name="squeeze"),
            helper.make_node("Gemm", ["summary", "D", "d"], ["logits"], name="dense", transB=1),
            helper.make_node("Sigmoid", ["logits"], ["alarms"], name="sigmoid"),
        ]
        constants = {
            "W": w,
            "R": r,
            "B": b,
            "directions": np.array([0]),
            "D": weights["dense.weight"],
            "d": weights["dense.bias"],
        }
        state = [1, "batch", UNITS]
        return make_model(
            "series_gru",
            nodes,
            [
                helper.make_tensor_value_info("signals", TensorProto.FLOAT, ["batch", steps or self.piece, SIGNALS]),
                helper.make_tensor_value_info("state", TensorProto.FLOAT, state),
            ],
            [
                helper.make_tensor_value_info("alarms", TensorProto.FLOAT, ["batch", ALARMS]),
                helper.make_tensor_value_info("next_state", TensorProto.FLOAT, state),
            ],
            constants,
        )

    def sequences(self, count: int, seed: int = 0) -> NDArray[np.float32]:
        return measurements(count, seed=10_000 + seed)[0]


NETWORK = _Watcher()

if __name__ == "__main__":
    NETWORK.main(__doc__)
