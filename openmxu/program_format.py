"""Programs as arrays of a file, and back; reading checks everything, because files are not trusted.

A program file is an uncompressed ``.npz`` archive without pickled objects: ``header`` (UTF-8 JSON as uint8: format,
version, configuration, batch, inputs, outputs, sizes, layers, states), ``instructions`` (uint8, (n, 16)), ``weights``
and ``constants`` (uint8 vectors), ``layers`` (int32, (n,)), ``before`` and ``after`` (the host's stages: ONNX models as
uint8 vectors, empty if there is none).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES, Instruction, Opcode, encode_program
from openmxu.layer import Layer
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.host_segment import HostSegment
from openmxu.segments.host_tensor import HostTensor, Packing
from openmxu.state import State

if TYPE_CHECKING:
    from openmxu.program import Program

__all__ = ["ARRAYS", "FORMAT", "VERSION", "decode", "encode"]

FORMAT = "openmxu program"
VERSION = 5
ARRAYS = {
    **dict.fromkeys(("header", "instructions", "weights", "constants", "before", "after"), "uint8"),
    "layers": "int32",
}
"""The arrays of a file, with their types."""
_STORED = ("uint8", "int8", "int16", "int32")
_DTYPES = (*_STORED, "float32")
_HOST_DTYPES = (*_DTYPES, "uint16", "int64", "uint32", "uint64", "float16", "float64", "bool")
"""Types of arrays that only the host works on."""


def encode(program: Program) -> dict[str, NDArray[Any]]:
    """The arrays of a program's file."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "config": program.config.as_dict(),
        "batch": program.batch,
        **{
            name: [dataclasses.asdict(item) for item in getattr(program, name)]
            for name in ("inputs", "outputs", "device_inputs", "device_outputs")
        },
        "constants_offset": program.constants_offset,
        "host_bytes": program.host_bytes,
        "multiply_adds": program.multiply_adds,
        "layers": [dataclasses.asdict(layer) for layer in program.layers],
        "before": _stage_header(program.before),
        "after": _stage_header(program.after),
        "states": [dataclasses.asdict(state) for state in program.states],
    }
    return {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "instructions": encode_program(program.instructions),
        "weights": program.weights,
        "constants": program.constants,
        "layers": program.layer_numbers,
        "before": _stage_bytes(program.before),
        "after": _stage_bytes(program.after),
    }


def _stage_bytes(stage: HostSegment | None) -> NDArray[np.uint8]:
    return np.frombuffer(b"" if stage is None else stage.model, np.uint8)


def _stage_header(stage: HostSegment | None) -> dict[str, Any] | None:
    """A stage's entry in a file's header; the graph is a separate array."""
    if stage is None:
        return None
    specs = {name: [dataclasses.asdict(spec) for spec in getattr(stage, name)] for name in ("inputs", "outputs")}
    return {**specs, "batch": stage.batch}


def decode(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The fields of the program in the arrays of a file.

    Raises
    ------
    ValueError, KeyError, TypeError, AttributeError, OverflowError
        The arrays are not a program.
    """
    for name, array in arrays.items():
        dimensions = 2 if name == "instructions" else 1
        if array.dtype != ARRAYS[name] or array.ndim != dimensions:
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
    tensors = [_decode_tensor(item) for item in (*header["device_inputs"], *header["device_outputs"])]
    for tensor in tensors:
        if tensor.offset + tensor.extent(batch, config.size) > header["host_bytes"]:
            raise ValueError(f"{tensor.name} lies outside host memory")
    if header["constants_offset"] + arrays["constants"].size > header["host_bytes"]:
        raise ValueError("the constants lie outside host memory")
    states = tuple(_decode_state(item, config, batch) for item in header["states"])
    layers = tuple(_decode_layer(item) for item in header["layers"])
    numbers = arrays["layers"]
    if len(numbers) != len(words) or not ((numbers >= -1) & (numbers < len(layers))).all():
        raise ValueError(f"the instructions do not belong to {len(layers)} layers")
    stages = [_decode_stage(name, header, arrays) for name in ("before", "after")]
    count = len(header["device_inputs"])
    inputs, outputs = _decode_specs(header["inputs"]), _decode_specs(header["outputs"])
    _check_flow(inputs, stages[0], tensors[:count], tensors[count:], stages[1], outputs)
    return {
        "config": config,
        "batch": batch,
        "inputs": inputs,
        "outputs": outputs,
        "device_inputs": tuple(tensors[:count]),
        "device_outputs": tuple(tensors[count:]),
        "instructions": tuple(Instruction(int.from_bytes(word.tobytes(), "little")) for word in words),
        "weights": arrays["weights"],
        "constants": arrays["constants"],
        "constants_offset": header["constants_offset"],
        "host_bytes": header["host_bytes"],
        "multiply_adds": header["multiply_adds"],
        "layers": layers,
        "layer_numbers": numbers,
        "before": stages[0],
        "after": stages[1],
        "states": states,
    }


def _decode_stage(name: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> HostSegment | None:
    item = header[name]
    if item is None:
        return None
    if item["batch"] is not None:
        _check_number(f"the batch of {name}", item["batch"], 1)
    inputs, outputs = _decode_specs(item["inputs"]), _decode_specs(item["outputs"])
    stage = HostSegment(arrays[name].tobytes(), inputs, outputs, item["batch"])
    stage.check()
    return stage


def _decode_specs(items: Sequence[Mapping[str, Any]]) -> tuple[ArraySpec, ...]:
    specs = tuple(ArraySpec(**{**item, "shape": tuple(item["shape"])}) for item in items)
    for spec in specs:
        if not isinstance(spec.name, str):
            raise ValueError(f"a tensor's name is {spec.name!r}")
        if spec.dtype not in _HOST_DTYPES:
            raise ValueError(f"the type of {spec.name} is {spec.dtype!r}")
        for axis, length in enumerate(spec.shape):
            _check_number(f"dimension {axis} of {spec.name}", length, 1)
        _check_number(f"batch_axis of {spec.name}", spec.batch_axis, 0, len(spec.shape))
    return specs


def _check_flow(
    inputs: Sequence[ArraySpec],
    before: HostSegment | None,
    device_inputs: Sequence[HostTensor],
    device_outputs: Sequence[HostTensor],
    after: HostSegment | None,
    outputs: Sequence[ArraySpec],
) -> None:
    """Check that every array exists, with the expected type and shape, before a stage or the device reads it."""
    if not all((inputs, device_inputs, device_outputs, outputs)):
        raise ValueError("there is no input or no output")
    steps = [([item.spec for item in device_inputs], [item.spec for item in device_outputs]), (outputs, ())]
    if before is not None:
        steps.insert(0, (before.inputs, before.outputs))
    if after is not None:
        steps.insert(-1, (after.inputs, after.outputs))
    there = {spec.name: spec for spec in inputs}
    for given, made in steps:
        for spec in given:
            if there.get(spec.name) != spec:
                raise ValueError(f"nothing makes {spec.name}, {spec}")
        there |= {spec.name: spec for spec in made}


def _decode_layer(item: dict[str, Any]) -> Layer:
    layer = Layer(**item)
    if not isinstance(layer.name, str) or not isinstance(layer.kind, str):
        raise ValueError(f"a layer's name and kind are {layer.name!r}, {layer.kind!r}")
    _check_number(f"multiply_adds of {layer.name}", layer.multiply_adds, 0)
    return layer


def _decode_state(item: dict[str, Any], config: Config, batch: int) -> State:
    state = State(**{**item, "tensor": _decode_tensor(item["tensor"]), "parts": tuple(item["parts"])})
    name = state.tensor.name
    if not isinstance(state.output, str):
        raise ValueError(f"the output of the state {name} is {state.output!r}")
    for count in state.parts:
        _check_number(f"a part of {name}", count, 1)
    if sum(state.parts) != batch:
        raise ValueError(f"the state {name} is there for {sum(state.parts)} batch elements")
    rows = state.tensor.extent(batch, config.size) // config.size
    _check_number(f"the place of {name}", state.unified_buffer, 0, config.unified_buffer_rows - rows)
    return state


def _decode_tensor(item: dict[str, Any]) -> HostTensor:
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
    numbers: dict[str, tuple[int, int]] = {"columns": (tensor.columns, 1), "offset": (tensor.offset, 0)}
    numbers |= {f"dimension {axis}": (length, 1) for axis, length in enumerate(tensor.shape)}
    for what, (number, minimum) in numbers.items():
        _check_number(f"{what} of {tensor.name}", number, minimum)
    if math.prod(tensor.shape) % tensor.columns:
        raise ValueError(f"{tensor.name} of shape {tensor.shape} has no rows of {tensor.columns}")
    if packing is not None:
        _check_packing(tensor, packing)
    _check_number(f"batch_axis of {tensor.name}", tensor.batch_axis, 0, len(tensor.shape))
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
        # The origin may lie outside the image, before or behind it.
        minimum = None if field.name in ("origin_y", "origin_x", "fill") else 1
        _check_number(f"{field.name} of {tensor.name}", getattr(packing, field.name), minimum)
    if packing.image_height * packing.image_width != tensor.positions:
        raise ValueError(f"{tensor.name} of shape {tensor.shape} has no {packing.image_height} × {packing.image_width}")
    limits = np.iinfo(tensor.stored)
    _check_number(f"fill of {tensor.name}", packing.fill, int(limits.min), int(limits.max))


def _check_number(what: str, value: object, minimum: int | None, maximum: int | None = None) -> None:
    if type(value) is not int or (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise ValueError(f"{what} is {value!r}")
