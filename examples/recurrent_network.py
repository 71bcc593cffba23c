"""What the example networks with recurrent layers have in common: float model, quantized model, and how they run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray

import openmxu
from examples.recurrent_layers import with_steps
from openmxu.exact_session import exact_session

__all__ = ["RecurrentNetwork"]

_CALIBRATION_SEED = 77


class RecurrentNetwork:
    """A network in a folder with ``weights.npz``, from which ``quantized.onnx`` is made.

    Attributes
    ----------
    folder
        Of the files.
    source, result
        Names of the input that is a sequence and of the output that matters.
    length
        Steps of a whole sequence.
    piece
        Steps that one execution takes; the rest of a network with states comes in further executions.
    states
        Inputs that are states, each with the output that is its next value.
    calibration
        Number of sequences that it is quantized with.
    """

    folder: Path
    source: str
    result: str
    length: int
    piece: int
    states: ClassVar[Mapping[str, str]] = {}
    calibration = 64

    def float_model(self, steps: int | None = None) -> onnx.ModelProto:
        """The network as it was trained, for ``steps`` steps at a time: ``piece`` if there is no number."""
        raise NotImplementedError

    def sequences(self, count: int, seed: int = 0) -> NDArray[Any]:
        """Whole sequences that the network was not trained on, (count, length, …)."""
        raise NotImplementedError

    def calibration_sequences(self) -> NDArray[Any]:
        """Whole sequences that it is quantized with."""
        return self.sequences(self.calibration, _CALIBRATION_SEED)

    def model(self, steps: int | None = None) -> onnx.ModelProto:
        """The quantized network for ``steps`` steps at a time: ``piece`` if there is no number."""
        return with_steps(onnx.load(self.folder / "quantized.onnx"), self.source, steps or self.piece)

    def quantize(self) -> onnx.ModelProto:
        """Quantize the float model. Calibration takes whole sequences, because states grow with time."""
        return openmxu.quantize(self.float_model(self.length), self._given(self.calibration_sequences()))

    def inputs(self, count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
        """What one execution takes: the first piece of sequences, and states of 0."""
        return self._given(np.ascontiguousarray(self.sequences(count, seed)[:, : self.piece]))

    def _given(self, sequences: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Sequences, and states of 0."""
        graph = self.float_model(1).graph
        units = {item.name: item.type.tensor_type.shape.dim[2].dim_value for item in graph.input[1:]}
        states = {name: np.zeros((1, len(sequences), units[name]), np.float32) for name in self.states}
        return {self.source: sequences, **states}

    def run(self, device: openmxu.Device, sequences: NDArray[Any]) -> NDArray[np.float32]:
        """What the quantized network finds behind the last step of sequences, all of them in one batch."""
        if not self.states:
            program = openmxu.compile(self.model(sequences.shape[1]), device.config, batch=len(sequences))
            return program.run(device, sequences)[self.result]
        program = openmxu.compile(self.model(), device.config, batch=len(sequences), states=self.states)
        session = program.session(device)
        for start in range(0, sequences.shape[1], self.piece):
            results = session.run(np.ascontiguousarray(sequences[:, start : start + self.piece]))
        return results[self.result]

    def run_float(self, sequences: NDArray[Any]) -> NDArray[np.float32]:
        """The same of the float model, by ONNX Runtime."""

        model = self.float_model(sequences.shape[1]).SerializeToString()
        session = exact_session(model)
        return session.run([self.result], self._given(sequences))[0]

    def main(self, description: str) -> None:
        """The command of ``network.py``."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the model here")
        parser.add_argument("--steps", type=int, metavar="N", help=f"of one execution; default: {self.piece}")
        parser.add_argument("--float", action="store_true", help="the float model instead of the quantized one")
        parser.add_argument("--quantize", action="store_true", help="quantize anew, into quantized.onnx of this folder")
        arguments = parser.parse_args()
        if arguments.quantize:
            onnx.save(with_steps(self.quantize(), self.source, self.piece), self.folder / "quantized.onnx")
        if arguments.output is not None:
            make = self.float_model if arguments.float else self.model
            onnx.save(make(arguments.steps), arguments.output)
        if arguments.output is None and not arguments.quantize:
            parser.error("nothing to do: --output or --quantize")
