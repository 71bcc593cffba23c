"""Train the MNIST CNN with PyTorch, quantize it, and write both networks and the digits that it was not trained on.

    pip install '.[torch]'
    python examples/mnist/train.py digits.npz
    python examples/mnist/train.py FOLDER

The data is an archive with ``images``, uint8 (count, 28, 28), and ``labels``, or a folder with the files of MNIST
(``train-images-idx3-ubyte.gz`` and ``train-labels-idx1-ubyte.gz``). 500 digits are drawn at random once, before
training, and set aside. The committed network was trained on 7,500 other digits.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, Python finds only its own folder

import openmxu
from examples.classifier import accuracy, pixels
from examples.image_files import DataFileError, read_idx_images
from examples.layers import float_model
from examples.mnist.network import FLOAT_MODEL, LAYERS, MODEL, SHAPE, TEST_SLICE
from examples.training import train, turned
from openmxu.program_file import write_atomically

SEED = 2017
TEST_IMAGES = 500
CALIBRATION_IMAGES = 256


def main() -> None:
    """Split, train, quantize, check, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="archive or folder")
    parser.add_argument("--output", type=Path, default=MODEL.parent, help="folder to write to")
    parser.add_argument("--epochs", type=int, default=40, help="of training; default: %(default)s")
    arguments = parser.parse_args()
    try:
        images, labels = read(arguments.data)
    except (DataFileError, FileNotFoundError) as error:
        raise SystemExit(f"{parser.prog}: error: {error}") from None
    order = np.random.default_rng(SEED).permutation(len(images))
    test, trained = order[:TEST_IMAGES], order[TEST_IMAGES:]
    parameters = train(
        LAYERS,
        pixels(images[trained]),
        labels[trained].astype(np.int64),
        augment=turned,
        epochs=arguments.epochs,
        seed=SEED,
    )
    model = float_model(LAYERS, SHAPE, parameters, "mnist")
    quantized = openmxu.quantize(model, pixels(images[trained[:CALIBRATION_IMAGES]]))
    for text, each in (("float", model), ("quantized", quantized)):
        right = accuracy(each, pixels(images[test]), labels[test])
        print(f"accuracy of the {text} network on {TEST_IMAGES} digits that it was not trained on: {right:.4f}")
    for path, each in ((FLOAT_MODEL, model), (MODEL, quantized)):
        write_atomically(arguments.output / path.name, each.SerializeToString(deterministic=True))
    archive = io.BytesIO()
    np.savez_compressed(archive, images=images[test, 0], labels=labels[test])
    write_atomically(arguments.output / TEST_SLICE.name, archive.getvalue())


def read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Digits, uint8 (count, 1, 28, 28), and their labels, uint8 (count,)."""
    if path.is_dir():
        return read_idx_images(path, "train")
    with np.load(path, allow_pickle=False) as archive:
        return archive["images"][:, np.newaxis], archive["labels"]


if __name__ == "__main__":
    main()
