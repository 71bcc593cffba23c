"""The CNN of the MNIST example for Fashion-MNIST.

    python examples/fashion/network.py -o fashion.onnx                 # seeded weights
    python examples/fashion/network.py -o fashion.onnx --data FOLDER   # trained on the files of Fashion-MNIST

FOLDER holds ``train-images-idx3-ubyte.gz`` and the other three files, packed or unpacked.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

from examples.classifier import Classifier
from examples.image_files import read_idx_images
from examples.mnist.network import LAYERS, SHAPE

__all__ = ["NETWORK"]

NETWORK = Classifier(name="fashion", shape=SHAPE, layers=LAYERS, read=read_idx_images)

if __name__ == "__main__":
    NETWORK.main(__doc__)
