"""MNIST CNN: three convolutions, two of them with stride 2, and two dense layers; trained.

    python examples/mnist/network.py -o mnist.onnx            # the quantized model as a file
    python examples/mnist/network.py -o float.onnx --float    # the float model

Both are committed; ``train.py`` makes them anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import numpy as np
import onnx
from numpy.typing import NDArray

from examples.layers import Conv, Dense, Flatten, Layer, Normalize, Relu
from openmxu.program_file import write_atomically

__all__ = ["FLOAT_MODEL", "LAYERS", "MODEL", "NETWORK", "SHAPE", "TEST_SLICE", "unseen_digits"]

SHAPE = (1, 28, 28)

LAYERS: tuple[Layer, ...] = (
    Conv(6, 3, padding=1, bias=False),
    Normalize(),
    Relu(),
    Conv(12, 6, stride=2, padding=2, bias=False),
    Normalize(),
    Relu(),
    Conv(24, 6, stride=2, padding=2, bias=False),
    Normalize(),
    Relu(),
    Flatten(),
    Dense(200),
    Relu(),
    Dense(10),
)

FLOAT_MODEL = Path(__file__).with_name("mnist_float.onnx")
MODEL = Path(__file__).with_name("mnist.onnx")
"""Quantized. Input ``image``: float32 (batch, 1, 28, 28), 0 to 1. Output ``scores``: float32 (batch, 10)."""

TEST_SLICE = Path(__file__).with_name("mnist_test.npz")


def unseen_digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The 500 digits that the network was not trained on, float32 (500, 1, 28, 28) from 0 to 1, and their labels."""
    with np.load(TEST_SLICE, allow_pickle=False) as archive:
        images = archive["images"][:, np.newaxis].astype(np.float32) / np.float32(255)
        return images, archive["labels"].astype(np.int64)


class _Mnist:
    """The committed network, and digits of the test slice, again and again if need be."""

    def model(self) -> onnx.ModelProto:
        return onnx.load(MODEL)

    def inputs(self, count: int, seed: int = 0) -> NDArray[np.float32]:
        images, _ = unseen_digits()
        return images[np.random.default_rng(seed).permutation(max(count, len(images)))[:count] % len(images)]

    def unseen(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return unseen_digits()


NETWORK = _Mnist()


def main() -> None:
    """Write a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="ONNX file to write")
    parser.add_argument("--float", action="store_true", help="the float model instead of the quantized one")
    arguments = parser.parse_args()
    write_atomically(arguments.output, (FLOAT_MODEL if arguments.float else MODEL).read_bytes())


if __name__ == "__main__":
    main()
