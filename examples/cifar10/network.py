"""CIFAR-10 CNN: two pairs of convolutions, each behind a normalization and before a maximum, and two dense layers.

    python examples/cifar10/network.py -o cifar10.onnx                 # seeded weights
    python examples/cifar10/network.py -o cifar10.onnx --data FOLDER   # trained on the files of CIFAR-10

FOLDER holds the binary version, ``data_batch_1.bin`` to ``test_batch.bin``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

from examples.classifier import Classifier
from examples.image_files import read_cifar10
from examples.layers import Conv, Dense, Flatten, MaxPool, Normalize, Relu, Softmax

__all__ = ["NETWORK"]

NETWORK = Classifier(
    name="cifar10",
    shape=(3, 32, 32),
    layers=(
        Normalize(),
        Conv(32, 3, padding=1),
        Relu(),
        Conv(32, 3, padding=1),
        Relu(),
        MaxPool(2),
        Normalize(),
        Conv(64, 3, padding=1),
        Relu(),
        Conv(64, 3),
        Relu(),
        MaxPool(2),
        Flatten(),
        Dense(512),
        Relu(),
        Dense(10),
        Softmax(),
    ),
    read=read_cifar10,
)

if __name__ == "__main__":
    NETWORK.main(__doc__)
