"""ResNet-20 for images of 32 × 32 pixels: nine residual blocks with two convolutions each.

    python examples/resnet20/network.py -o resnet20.onnx                 # seeded weights
    python examples/resnet20/network.py -o resnet20.onnx --data FOLDER   # trained on the files of CIFAR-10

Where a block halves the plane, a 1 × 1 convolution with stride 2 is its shortcut. Deep Residual Learning for Image
Recognition, He et al., CVPR 2016, section 4.2. FOLDER holds CIFAR-10's binary version, ``data_batch_1.bin`` to
``test_batch.bin``.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

from examples.classifier import Classifier
from examples.image_files import read_cifar10
from examples.layers import Conv, Dense, GlobalAverage, Layer, Normalize, Relu, Residual

__all__ = ["NETWORK"]

_BLOCKS = 3
"""Of each plane size."""


def _convolution(channels: int, kernel: int, stride: int = 1) -> tuple[Layer, ...]:
    return Conv(channels, kernel, stride, padding=kernel // 2, bias=False), Normalize()


def _block(channels: int, stride: int) -> tuple[Layer, ...]:
    body = (*_convolution(channels, 3, stride), Relu(), *_convolution(channels, 3))
    return Residual(body, shortcut=_convolution(channels, 1, stride) if stride > 1 else ()), Relu()


def _layers() -> tuple[Layer, ...]:
    layers = [*_convolution(16, 3), Relu()]
    for channels in (16, 32, 64):
        for block in range(_BLOCKS):
            layers += _block(channels, stride=2 if channels > 16 and block == 0 else 1)
    return (*layers, GlobalAverage(), Dense(10))


NETWORK = Classifier(name="resnet20", shape=(3, 32, 32), layers=_layers(), read=read_cifar10)

if __name__ == "__main__":
    NETWORK.main(__doc__)
