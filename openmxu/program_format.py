"""Programs as arrays of a file, and back; reading checks everything, because files are not trusted.

A program file is an uncompressed ``.npz`` archive without pickled objects: ``header`` (UTF-8 JSON as uint8: format,
version, configuration, batch, inputs, outputs, segments, sizes, layers, states), ``instructions`` (uint8, (n, 16)),
``weights`` and ``constants`` (uint8 vectors), ``layers`` (int32, (n,)), and ``graphs`` (the ONNX models of the host's
segments, one after the other, as a uint8 vector).
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
from openmxu.segments.array_spec import WHOLE, ArraySpec
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_segment import HostSegment
from openmxu.segments.host_tensor import HostTensor, Packing
from openmxu.state import State

if TYPE_CHECKING:
    from openmxu.program import Program

__all__ = ["ARRAYS", "FORMAT", "VERSION", "decode", "encode"]

FORMAT = "openmxu program"
VERSION = 7
ARRAYS = {
    **dict.fromkeys(("header", "instructions", "weights", "constants", "graphs"), "uint8"),
    "layers": "int32",
}
"""The arrays of a file, with their types."""
_DEVICE, _HOST = "device", "host"
"""Kinds of segments."""
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
        "inputs": [dataclasses.asdict(item) for item in program.inputs],
        "outputs": [dataclasses.asdict(item) for item in program.outputs],
        "segments": [_segment_header(segment) for segment in program.segments],
        "host_bytes": program.host_bytes,
        "multiply_adds": program.multiply_adds,
        "layers": [dataclasses.asdict(layer) for layer in program.layers],
        "states": [dataclasses.asdict(state) for state in program.states],
        "by_element": program.by_element,
    }
    return {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "instructions": encode_program(program.instructions),
        "weights": program.weights,
        "constants": program.constants,
        "layers": program.layer_numbers,
        "graphs": np.frombuffer(b"".join(segment.model for segment in program.host_segments), np.uint8),
    }


def _segment_header(segment: HostSegment | DeviceSegment) -> dict[str, Any]:
    """A segment's entry in a file's header; of a graph it holds the length."""
    entry = {name: [dataclasses.asdict(item) for item in getattr(segment, name)] for name in ("inputs", "outputs")}
    if isinstance(segment, DeviceSegment):
        fields = ("batch", "elements", "start", "stop", "layers", "constants")
        return {"kind": _DEVICE, **entry, **{name: getattr(segment, name) for name in fields}}
    return {
        "kind": _HOST,
        **entry,
        "batch": segment.batch,
        "multiply_adds": segment.multiply_adds,
        "graph_bytes": len(segment.model),
    }


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
    config = Config(**header["config"])
    batch = header["batch"]
    for name in ("batch", "host_bytes", "multiply_adds"):
        _check_number(name, header[name], 1 if name == "batch" else 0)
    states = tuple(_decode_state(item, config, batch) for item in header["states"])
    layers = tuple(_decode_layer(item) for item in header["layers"])
    numbers = arrays["layers"]
    if len(numbers) != len(words) or not ((numbers >= -1) & (numbers < len(layers))).all():
        raise ValueError(f"the instructions do not belong to {len(layers)} layers")
    segments = _decode_segments(header["segments"], arrays["graphs"])
    of_device = [segment for segment in segments if isinstance(segment, DeviceSegment)]
    _check_instructions(of_device, words[:, 0], len(layers))
    _check_memory(of_device, config, header["host_bytes"], arrays["constants"].size)
    inputs, outputs = _decode_specs(header["inputs"]), _decode_specs(header["outputs"])
    _check_flow(inputs, segments, outputs, header["by_element"])
    return {
        "config": config,
        "batch": batch,
        "inputs": inputs,
        "outputs": outputs,
        "segments": segments,
        "instructions": tuple(Instruction(int.from_bytes(word.tobytes(), "little")) for word in words),
        "weights": arrays["weights"],
        "constants": arrays["constants"],
        "host_bytes": header["host_bytes"],
        "multiply_adds": header["multiply_adds"],
        "layers": layers,
        "layer_numbers": numbers,
        "states": states,
        "by_element": header["by_element"],
    }


def _decode_segments(
    items: Sequence[Mapping[str, Any]], graphs: NDArray[np.uint8]
) -> tuple[HostSegment | DeviceSegment, ...]:
    segments: list[HostSegment | DeviceSegment] = []
    taken = 0
    for number, item in enumerate(items):
        where = f"segment {number}"
        if item["kind"] == _DEVICE:
            segments.append(_decode_device_segment(where, item))
        elif item["kind"] == _HOST:
            _check_number(f"graph_bytes of {where}", item["graph_bytes"], 0, graphs.size - taken)
            graph = graphs[taken : taken + item["graph_bytes"]].tobytes()
            segments.append(_decode_host_segment(where, item, graph))
            taken += len(graph)
        else:
            raise ValueError(f"the kind of {where} is {item['kind']!r}")
    if taken != graphs.size:
        raise ValueError(f"the segments have {taken} bytes of graphs, not {graphs.size}")
    return tuple(segments)


def _decode_device_segment(where: str, item: Mapping[str, Any]) -> DeviceSegment:
    inputs, outputs = (tuple(map(_decode_tensor, item[name])) for name in ("inputs", "outputs"))
    if not inputs or not outputs:
        raise ValueError(f"{where} has no input or no output")
    pairs = [tuple(item[name]) for name in ("layers", "constants")]
    for value in (item["start"], item["stop"], *pairs[0], *pairs[1]):
        _check_number(f"a number of {where}", value, 0)
    _check_number(f"the batch of {where}", item["batch"], 1)
    if item["elements"] is not None:
        _check_number(f"elements of {where}", item["elements"], 1)
    (first, last), (offset, size) = pairs
    return DeviceSegment(
        inputs=inputs,
        outputs=outputs,
        batch=item["batch"],
        elements=item["elements"],
        start=item["start"],
        stop=item["stop"],
        layers=(first, last),
        constants=(offset, size),
    )


def _decode_host_segment(where: str, item: Mapping[str, Any], graph: bytes) -> HostSegment:
    if item["batch"] is not None:
        _check_number(f"the batch of {where}", item["batch"], 1)
    _check_number(f"multiply_adds of {where}", item["multiply_adds"], 0)
    inputs, outputs = _decode_specs(item["inputs"]), _decode_specs(item["outputs"])
    segment = HostSegment(graph, inputs, outputs, item["batch"], item["multiply_adds"])
    segment.check()
    return segment


def _check_instructions(segments: Sequence[DeviceSegment], opcodes: NDArray[np.uint8], layers: int) -> None:
    """Check that the segments share out all instructions and layers, and that each ends with Halt."""
    instruction = layer = 0
    for segment in segments:
        begins = segment.start == instruction and segment.layers[0] == layer
        if not begins or segment.stop <= segment.start or segment.layers[1] < layer:
            raise ValueError("the device's segments are not one behind the other")
        instruction, layer = segment.stop, segment.layers[1]
        if instruction > len(opcodes) or opcodes[instruction - 1] != Opcode.HALT:
            raise ValueError("the last instruction of a segment is not Halt")
    if not segments or instruction != len(opcodes) or layer != layers:
        raise ValueError("the segments do not have all instructions and layers")


def _check_memory(segments: Sequence[DeviceSegment], config: Config, host_bytes: int, constant_bytes: int) -> None:
    """Check that everything lies in host memory, and that there are as many constants as needed."""
    for segment in segments:
        for tensor in (*segment.inputs, *segment.outputs):
            if tensor.offset + tensor.extent(segment.batch, config.size) > host_bytes:
                raise ValueError(f"{tensor.name} lies outside host memory")
        if sum(segment.constants) > host_bytes:
            raise ValueError("the constants lie outside host memory")
    needed = sum(segment.constants[1] for segment in segments)
    if needed != constant_bytes:
        raise ValueError(f"there are {constant_bytes} bytes of constants, not {needed}")


def _decode_specs(items: Sequence[Mapping[str, Any]]) -> tuple[ArraySpec, ...]:
    specs = tuple(ArraySpec(**{**item, "shape": tuple(item["shape"])}) for item in items)
    for spec in specs:
        if not isinstance(spec.name, str):
            raise ValueError(f"a tensor's name is {spec.name!r}")
        if spec.dtype not in _HOST_DTYPES:
            raise ValueError(f"the type of {spec.name} is {spec.dtype!r}")
        for axis, length in enumerate(spec.shape):
            _check_number(f"dimension {axis} of {spec.name}", length, 1)
        _check_number(f"batch_axis of {spec.name}", spec.batch_axis, WHOLE, len(spec.shape))
    return specs


def _check_flow(
    inputs: Sequence[ArraySpec],
    segments: Sequence[HostSegment | DeviceSegment],
    outputs: Sequence[ArraySpec],
    by_element: object,
) -> None:
    """Check that every array exists, with the expected type and shape, before a segment reads it."""
    if not inputs or not outputs:
        raise ValueError("there is no input or no output")
    if type(by_element) is not bool:
        raise ValueError(f"by_element is {by_element!r}")
    there = {spec.name: spec for spec in _inside(inputs, by_element)}
    for segment in segments:
        if isinstance(segment, DeviceSegment):
            given, made = segment.specs(segment.inputs), segment.specs(segment.outputs)
        else:
            given, made = list(segment.inputs), list(segment.outputs)
        _check_there(there, given)
        there |= {spec.name: spec for spec in made}
    _check_there(there, _inside(outputs, by_element))


def _inside(specs: Sequence[ArraySpec], by_element: bool) -> list[ArraySpec]:
    """The caller's arrays as segments see them."""
    if not by_element:
        return list(specs)
    return [spec.whole(1) for spec in specs]


def _check_there(there: Mapping[str, ArraySpec], specs: Sequence[ArraySpec]) -> None:
    for spec in specs:
        if there.get(spec.name) != spec:
            raise ValueError(f"nothing makes {spec.name}, {spec}")


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
    _check_number(f"fill of {tensor.name}", tensor.fill, int(limits.min), int(limits.max))
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
