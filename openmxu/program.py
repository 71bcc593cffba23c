"""Compiled models: what runs on every device, can be saved and loaded, and checks what it is given."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES, Instruction, Opcode, encode_program
from openmxu.device import Device
from openmxu.disassembler import disassemble
from openmxu.host_tensor import HostTensor, Packing
from openmxu.layer import Layer
from openmxu.program_file import ProgramFileError, write_atomically

__all__ = ["InputError", "Program"]

FORMAT = "openmxu program"
VERSION = 3
_ARRAYS = {"header": "uint8", "instructions": "uint8", "weights": "uint8", "constants": "uint8", "layers": "int32"}
"""What a file holds, and of which type."""
_STORED = ("uint8", "int8", "int32")
_DTYPES = (*_STORED, "float32")

_DAMAGE = (
    *(ValueError, KeyError, TypeError, EOFError, AttributeError, SyntaxError, OverflowError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error),
    RuntimeError,  # zipfile, of compression and encryption that it does not know
)
"""What zipfile, numpy, json and the checks below raise when a file is no program."""


class InputError(ValueError):
    """An input has the wrong name, type or shape, or the device another configuration than the program."""


@dataclass(frozen=True)
class Program:
    """A model compiled for one configuration and batch.

    A program file is an uncompressed ``.npz`` archive without pickled objects: ``header`` (UTF-8 JSON as uint8: format,
    version, configuration, batch, inputs, outputs, sizes, layers), ``instructions`` (uint8, (n, 16)), ``weights`` and
    ``constants`` (uint8 vectors), ``layers`` (int32, (n,)).

    Attributes
    ----------
    config
        The only configuration that it runs on.
    batch
        Batch elements that one execution computes.
    inputs, outputs
        Names, types, shapes without the batch, and places in host memory.
    instructions
        Ended by Halt.
    weights
        Content of weight memory, uint8.
    constants
        Content of host memory from ``constants_offset`` on, uint8: biases and scales.
    host_bytes
        Size of host memory.
    multiply_adds
        Useful multiplications of one execution, padding not counted.
    layers
        What the instructions do, in the order of the network.
    layer_numbers
        For each instruction the number of the layer that it belongs to, int32; -1 for none.
    """

    config: Config
    batch: int
    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    instructions: tuple[Instruction, ...]
    weights: NDArray[np.uint8]
    constants: NDArray[np.uint8]
    constants_offset: int
    host_bytes: int
    multiply_adds: int
    layers: tuple[Layer, ...]
    layer_numbers: NDArray[np.int32]

    def run(
        self, device: Device, inputs: NDArray[np.generic] | Mapping[str, NDArray[np.generic]]
    ) -> dict[str, NDArray[np.generic]]:
        """Compute the model's outputs.

        Parameters
        ----------
        device
            Of the program's configuration.
        inputs
            The only input, or every input by name, each of shape (any batch, *shape). A batch larger than the
            program's takes several executions; the last one is padded with zeros.

        Returns
        -------
        Outputs by name, each of shape (batch, *shape).

        Raises
        ------
        InputError
            An input or the device does not fit; the message says what was expected and what was found.
        openmxu.device.DeviceError
            The device failed.
        """
        if device.config != self.config:
            raise InputError(f"the program was compiled for {self.config}, but the device is {device.config}")
        given = self.check_inputs(inputs)
        count = len(next(iter(given.values())))
        parts: list[dict[str, NDArray[np.generic]]] = []
        for start in range(0, max(count, 1), self.batch):
            stop = min(start + self.batch, count)
            if stop > start:
                parts.append(self._execute(device, {name: array[start:stop] for name, array in given.items()}))
        return {
            tensor.name: np.concatenate([part[tensor.name] for part in parts])
            if parts
            else np.zeros((0, *tensor.shape), tensor.dtype)
            for tensor in self.outputs
        }

    def executions(self, count: int) -> int:
        """How often the program runs for ``count`` batch elements."""
        return -(-count // self.batch)

    def disassemble(self) -> str:
        """The instructions as assembly text."""
        return disassemble(self.instructions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a program file; ``path`` holds either all of it or what it held before.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "config": self.config.as_dict(),
            "batch": self.batch,
            "inputs": [dataclasses.asdict(tensor) for tensor in self.inputs],
            "outputs": [dataclasses.asdict(tensor) for tensor in self.outputs],
            "constants_offset": self.constants_offset,
            "host_bytes": self.host_bytes,
            "multiply_adds": self.multiply_adds,
            "layers": [dataclasses.asdict(layer) for layer in self.layers],
        }
        buffer = io.BytesIO()
        np.savez(
            buffer,
            header=np.frombuffer(json.dumps(header).encode(), np.uint8),
            instructions=encode_program(self.instructions),
            weights=self.weights,
            constants=self.constants,
            layers=self.layer_numbers,
        )
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Read a program file.

        Raises
        ------
        openmxu.program_file.ProgramFileError
            The file is damaged, or none of :meth:`save`.
        OSError
            The file cannot be read.
        """
        data = Path(path).read_bytes()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in _ARRAYS}
            return _decode(arrays)
        except _DAMAGE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ProgramFileError(f"{os.fspath(path)} is no openmxu program, or damaged: {reason}") from None

    def check_inputs(
        self, inputs: NDArray[np.generic] | Mapping[str, NDArray[np.generic]]
    ) -> dict[str, NDArray[np.generic]]:
        """Check what :meth:`run` would be given, before a device is there.

        Returns
        -------
        The inputs by name.

        Raises
        ------
        InputError
            An input does not fit; the message says what was expected and what was found.
        """
        names = [tensor.name for tensor in self.inputs]
        if not isinstance(inputs, Mapping) and len(names) > 1:
            raise InputError(f"expected inputs named {', '.join(names)}; found one array")
        given = dict(inputs) if isinstance(inputs, Mapping) else dict.fromkeys(names, inputs)
        if sorted(given) != sorted(names):
            raise InputError(f"expected inputs named {', '.join(names)}; found {', '.join(map(str, given)) or 'none'}")
        for tensor in self.inputs:
            array = given[tensor.name]
            wanted = f"{tensor.dtype} of shape ({', '.join(['batch', *map(str, tensor.shape)])})"
            if not isinstance(array, np.ndarray):
                raise InputError(f"input {tensor.name!r} must be an array, {wanted}, not {type(array).__name__}")
            if array.dtype != tensor.dtype or array.shape[1:] != tensor.shape or array.ndim == 0:
                raise InputError(f"input {tensor.name!r} must be {wanted}, not {array.dtype} of shape {array.shape}")
        if len({len(array) for array in given.values()}) != 1:
            raise InputError("all inputs must have the same batch")
        return given

    def _execute(self, device: Device, inputs: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
        host = np.zeros(self.host_bytes, np.uint8)
        host[self.constants_offset : self.constants_offset + len(self.constants)] = self.constants
        count = 0
        for tensor in self.inputs:
            array = inputs[tensor.name]
            count = len(array)
            padded = np.zeros((self.batch, *tensor.shape), tensor.dtype)
            padded[:count] = array
            tensor.store(padded, host, self.config.size)
        device.execute(self.instructions, host, self.weights)
        return {tensor.name: tensor.load(host, self.batch, self.config.size)[:count] for tensor in self.outputs}


def _decode(arrays: Mapping[str, NDArray[np.generic]]) -> Program:
    """The program in the arrays of a file; raises one of ``_DAMAGE`` where it is none."""
    for name, array in arrays.items():
        dimensions = 2 if name == "instructions" else 1
        if array.dtype != _ARRAYS[name] or array.ndim != dimensions:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise ValueError(f"format {header['format']!r}, version {header['version']!r} is unknown")
    words = arrays["instructions"]
    if words.shape[1] != WORD_BYTES:
        raise ValueError(f"instructions have {words.shape[1]} bytes")
    if not len(words) or words[-1, 0] != Opcode.HALT:
        raise ValueError("the last instruction is not Halt")
    config = Config(**header["config"])
    batch = header["batch"]
    for name in ("batch", "constants_offset", "host_bytes", "multiply_adds"):
        _check_number(name, header[name], 1 if name == "batch" else 0)
    if not header["inputs"] or not header["outputs"]:
        raise ValueError("there is no input or no output")
    tensors = [_decode_tensor(item) for item in (*header["inputs"], *header["outputs"])]
    for tensor in tensors:
        if tensor.offset + tensor.extent(batch, config.size) > header["host_bytes"]:
            raise ValueError(f"{tensor.name} lies outside host memory")
    if header["constants_offset"] + arrays["constants"].size > header["host_bytes"]:
        raise ValueError("the constants lie outside host memory")
    layers = tuple(_decode_layer(item) for item in header["layers"])
    numbers = arrays["layers"]
    if len(numbers) != len(words) or not ((numbers >= -1) & (numbers < len(layers))).all():
        raise ValueError(f"the instructions do not belong to {len(layers)} layers")
    return Program(
        config=config,
        batch=batch,
        inputs=tuple(tensors[: len(header["inputs"])]),
        outputs=tuple(tensors[len(header["inputs"]) :]),
        instructions=tuple(Instruction(int.from_bytes(word.tobytes(), "little")) for word in words),
        weights=arrays["weights"],
        constants=arrays["constants"],
        constants_offset=header["constants_offset"],
        host_bytes=header["host_bytes"],
        multiply_adds=header["multiply_adds"],
        layers=layers,
        layer_numbers=numbers,
    )


def _decode_layer(item: dict[str, object]) -> Layer:
    layer = Layer(**item)
    if not isinstance(layer.name, str) or not isinstance(layer.kind, str):
        raise ValueError(f"a layer's name and kind are {layer.name!r}, {layer.kind!r}")
    _check_number(f"multiply_adds of {layer.name}", layer.multiply_adds, 0)
    return layer


def _decode_tensor(item: dict[str, object]) -> HostTensor:
    scale = item["scale"]
    packing = None if item["packing"] is None else Packing(**item["packing"])
    changes = {"shape": tuple(item["shape"]), "scale": None if scale is None else tuple(scale), "packing": packing}
    tensor = HostTensor(**{**item, **changes})
    if not isinstance(tensor.name, str):
        raise ValueError(f"a tensor's name is {tensor.name!r}")
    for what, value, known in (("type", tensor.dtype, _DTYPES), ("stored type", tensor.stored, _STORED)):
        if value not in known:
            raise ValueError(f"the {what} of {tensor.name} is {value!r}")
    if type(tensor.channels_first) is not bool:
        raise ValueError(f"channels_first of {tensor.name} is {tensor.channels_first!r}")
    numbers = {"columns": (tensor.columns, 1), "offset": (tensor.offset, 0)}
    numbers |= {f"dimension {axis}": (length, 1) for axis, length in enumerate(tensor.shape)}
    for what, (value, minimum) in numbers.items():
        _check_number(f"{what} of {tensor.name}", value, minimum)
    if math.prod(tensor.shape) % tensor.columns:
        raise ValueError(f"{tensor.name} of shape {tensor.shape} has no rows of {tensor.columns}")
    if packing is not None:
        _check_packing(tensor, packing)
    limits = np.iinfo(tensor.stored)
    _check_number(f"zero point of {tensor.name}", tensor.zero_point, int(limits.min), int(limits.max))
    if tensor.scale is not None:
        if len(tensor.scale) not in (1, tensor.columns) or not all(isinstance(value, float) for value in tensor.scale):
            raise ValueError(f"the scale of {tensor.name} is {tensor.scale!r}")
    elif tensor.stored != tensor.dtype:
        raise ValueError(f"{tensor.name} is {tensor.dtype}, but stored as {tensor.stored} without a scale")
    return tensor


def _check_packing(tensor: HostTensor, packing: Packing) -> None:
    for field in dataclasses.fields(packing):
        # Pixels may lie outside the image, before it or behind it.
        minimum = None if field.name in ("origin_y", "origin_x", "fill") else 1
        _check_number(f"{field.name} of {tensor.name}", getattr(packing, field.name), minimum)
    if packing.image_height * packing.image_width != tensor.positions:
        raise ValueError(f"{tensor.name} of shape {tensor.shape} has no {packing.image_height} × {packing.image_width}")
    limits = np.iinfo(tensor.stored)
    _check_number(f"fill of {tensor.name}", packing.fill, int(limits.min), int(limits.max))


def _check_number(what: str, value: object, minimum: int | None, maximum: int | None = None) -> None:
    if type(value) is not int or (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise ValueError(f"{what} is {value!r}")
