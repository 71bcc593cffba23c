"""What the example transformers have in common: float model and quantized model in a folder."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import openmxu
from openmxu.program_file import write_atomically

__all__ = ["TransformerNetwork"]


class TransformerNetwork:
    """A network in a folder with ``weights.npz``, from which ``quantized.onnx`` is made.

    Attributes
    ----------
    folder
        Of the files.
    """

    folder: Path

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The trained weights, by the names that PyTorch gives them."""
        with np.load(self.folder / "weights.npz", allow_pickle=False) as archive:
            return {name: archive[name].astype(np.float32) for name in archive.files}

    def float_model(self) -> onnx.ModelProto:
        """The network as it was trained."""
        raise NotImplementedError

    def calibration_data(self) -> NDArray[np.float32] | Mapping[str, NDArray[Any]]:
        """What it is quantized with."""
        raise NotImplementedError

    def model(self) -> onnx.ModelProto:
        """The quantized network."""
        return onnx.load(self.folder / "quantized.onnx")

    def main(self, description: str | None) -> None:
        """Write a model, or quantize the network anew."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("-o", "--output", type=Path, metavar="FILE", help="ONNX file to write")
        what.add_argument("--quantize", action="store_true", help="make quantized.onnx anew")
        parser.add_argument("--float", action="store_true", help="the float model instead of the quantized one")
        arguments = parser.parse_args()
        if arguments.quantize:
            model = openmxu.quantize(self.float_model(), self.calibration_data())
            write_atomically(self.folder / "quantized.onnx", model.SerializeToString(deterministic=True))
            return
        model = self.float_model() if arguments.float else self.model()
        write_atomically(arguments.output, model.SerializeToString(deterministic=True))
