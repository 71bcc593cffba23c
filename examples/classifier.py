"""A network that classifies images: seeded or trained weights, quantized."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

import openmxu
from examples.image_files import DataFileError
from examples.layers import Layer, Parameters, float_model
from examples.random_images import random_images
from examples.seeded import seeded_parameters
from openmxu.exact_session import exact_session
from openmxu.program_file import write_atomically

__all__ = ["Classifier", "accuracy", "pixels"]

_SEED = 2017
_CALIBRATION = 64
"""Images for the ranges of activations and the statistics of seeded weights."""

_TRAINED_CALIBRATION = 256


@dataclass(frozen=True)
class Classifier:
    """A network between images and the scores of classes.

    Attributes
    ----------
    name
    layers
    shape
        Of an image: channels, height, width.
    read
        Images and labels of a folder's ``train`` or ``test`` part, uint8 (count, *shape) and uint8 (count,).
    """

    name: str
    layers: tuple[Layer, ...]
    shape: tuple[int, int, int]
    read: Callable[[Path, str], tuple[NDArray[np.uint8], NDArray[np.uint8]]]

    def model(self) -> onnx.ModelProto:
        """The quantized network with seeded weights."""
        images = self.inputs(_CALIBRATION, seed=_SEED)
        return self._quantized(seeded_parameters(self.layers, images, _SEED), images)

    def inputs(self, count: int, seed: int = 0) -> NDArray[np.float32]:
        """Random images, float32 (count, *shape), from 0 to 1."""
        channels, size, _ = self.shape
        return pixels(random_images(count, channels, size, seed))

    def trained_model(self, folder: Path, epochs: int) -> onnx.ModelProto:
        """The quantized network, trained on the data of a folder; tells its accuracy on the test part."""
        from examples.training import shifted_and_mirrored, train

        images, labels = self.read(folder, "train")
        parameters = train(
            self.layers,
            pixels(images),
            labels.astype(np.int64),
            augment=shifted_and_mirrored,
            epochs=epochs,
            seed=_SEED,
        )
        calibration = pixels(images[np.random.default_rng(_SEED).permutation(len(images))[:_TRAINED_CALIBRATION]])
        images, labels = self.read(folder, "test")
        model = float_model(self.layers, self.shape, parameters, self.name)
        quantized = openmxu.quantize(model, calibration)
        for text, each in (("float", model), ("quantized", quantized)):
            print(f"accuracy of the {text} network on {len(labels)} test images: ", end="")
            print(f"{accuracy(each, pixels(images), labels):.4f}")
        return quantized

    def _quantized(self, parameters: Parameters, images: NDArray[np.float32]) -> onnx.ModelProto:
        return openmxu.quantize(float_model(self.layers, self.shape, parameters, self.name), images)

    def main(self, description: str) -> None:
        """The command line of a network's script."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("-o", "--output", type=Path, required=True, help="ONNX file to write")
        parser.add_argument("--data", type=Path, metavar="FOLDER", help="train on the files of this folder")
        parser.add_argument("--epochs", type=int, default=30, help="of training; default: %(default)s")
        arguments = parser.parse_args()
        try:
            model = self.model() if arguments.data is None else self.trained_model(arguments.data, arguments.epochs)
        except (DataFileError, FileNotFoundError) as error:
            raise SystemExit(f"{parser.prog}: error: {error}") from None
        write_atomically(arguments.output, model.SerializeToString(deterministic=True))


def pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bytes as numbers from 0 to 1."""
    return images.astype(np.float32) / np.float32(255)


def accuracy(model: onnx.ModelProto, images: NDArray[np.float32], labels: NDArray[np.integer]) -> float:
    """Part of the images whose class ONNX Runtime finds."""
    session = exact_session(model.SerializeToString())
    (scores,) = session.run(None, {"image": images})
    return float((scores.argmax(axis=1) == labels).mean())
