"""The six workloads of the TPU paper by name, as networks of the same kinds and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from examples.tpu_v1.convolutional import cnn0, cnn1
from examples.tpu_v1.graph import Workload
from examples.tpu_v1.perceptrons import mlp0, mlp1
from examples.tpu_v1.recurrent import lstm0, lstm1

__all__ = ["WORKLOADS"]

WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "MLP0": mlp0,
    "MLP1": mlp1,
    "LSTM0": lstm0,
    "LSTM1": lstm1,
    "CNN0": cnn0,
    "CNN1": cnn1,
}
"""What makes each of them; their weights are seeded, so that they are always the same."""
