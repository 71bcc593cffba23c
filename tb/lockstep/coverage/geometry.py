"""Coverage of the positions of accesses: ends of memories, edges of planes, windows and strides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import Memory, Role, accesses, table_rows
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode, Pooling, Register, format_named
from tb.lockstep.coverage.bins import Bin, have_load_weights
from tb.lockstep.programs.steps import Step

__all__ = ["Geometry"]

_SIDES = ("above", "below", "on the left", "on the right")
_STRIDES = ("0", "1", "2 or more", "255")
_PLACES = {
    Memory.UNIFIED_BUFFER: (
        Role.READ_HOST_MEMORY,
        Role.WRITE_HOST_MEMORY,
        Role.LOAD_WEIGHTS,
        Role.MATRIX_MULTIPLY,
        Role.CONVOLVE,
        Role.SOURCE,
        Role.OPERAND,
        Role.RESULT,
        Role.LOAD_PARAMETERS,
        Role.LOAD_TABLE,
    ),
    Memory.ACCUMULATORS: (Role.MATRIX_MULTIPLY, Role.CONVOLVE, Role.SOURCE),
    Memory.HOST: (Role.READ_HOST_MEMORY, Role.WRITE_HOST_MEMORY),
    Memory.PARAMETERS: (Role.LOAD_PARAMETERS, Role.ACTIVATE),
}
_HOST_STRIDES = ("0", "less than a row", "a row", "more than a row")
_DIRECTIONS = {
    Opcode.READ_HOST_MEMORY_ALTERNATE: "read",
    Opcode.WRITE_HOST_MEMORY_ALTERNATE: "write",
}


class Geometry:
    """Observes the positions of accesses in a case."""

    def __init__(self, config: Config, host_bytes: int, weight_bytes: int) -> None:
        self._config = config
        self._ends = {
            Memory.UNIFIED_BUFFER: config.unified_buffer_rows,
            Memory.ACCUMULATORS: config.accumulator_rows,
            Memory.HOST: host_bytes,
            Memory.PARAMETERS: config.parameter_sets,
        }
        self._weight_bytes = weight_bytes

    @staticmethod
    def declared(configs: Sequence[Config]) -> dict[str, list[str]]:
        """All bins."""
        roles = [(memory, role) for memory, roles in _PLACES.items() for role in roles]
        if all(table_rows(config.size) > config.unified_buffer_rows for config in configs):
            roles.remove((Memory.UNIFIED_BUFFER, Role.LOAD_TABLE))
        if not have_load_weights(configs):
            roles.remove((Memory.UNIFIED_BUFFER, Role.LOAD_WEIGHTS))
        strides = list(_HOST_STRIDES)
        if all(config.host_alignment == config.size for config in configs):
            strides.remove("less than a row")
        return {
            "ends of memories": [
                *(f"{memory.value}, {end}: {role.value}" for (memory, role), end in product(roles, ("first", "last"))),
                *(f"weight memory, {end}: Read_Weights" for end in ("first", "last")),
            ],
            "convolutions": [
                *(f"{width} inputs outside {side}" for width, side in product((8, 16), _SIDES)),
                *(f"{width} inputs {where}" for width, where in product((8, 16), ("all outside", "all inside"))),
                *(f"{stride} {axis}" for stride, axis in product(_STRIDES, ("down", "across"))),
                *(f"{axis} {end}" for axis, end in product(("dy", "dx"), ("lowest", "highest"))),
                "a plane of one row",
                "a plane of one position",
                "one output",
            ],
            "pooling": [
                f"{kind}: {what}"
                for kind, what in product(
                    ("maximum", "sum"),
                    [
                        *(f"outside {side}" for side in _SIDES),
                        "an empty window",
                        "a window larger than the plane",
                        "the whole plane",
                        "stride 0",
                        "windows that overlap",
                        "windows apart",
                        "a last row that is not full",
                        "padding of 255",
                    ],
                )
            ],
            "host strides": [f"{direction}: {s}" for direction, s in product(_DIRECTIONS.values(), strides)],
        }

    def observe(self, step: Step) -> Iterator[Bin]:
        """The bins hit by an instruction."""
        if step.fault is not FaultCode.NONE:
            return
        values = step.values
        for access in accesses(step.instruction, step.state.registers, step.state.config):
            if access.memory in self._ends:
                name = f"{access.memory.value}, {{}}: {access.role.value}"
                if access.first == 0:
                    yield "ends of memories", name.format("first")
                if self._is_last(access.memory, access.end):
                    yield "ends of memories", name.format("last")
        match step.opcode:
            case Opcode.READ_WEIGHTS:
                end = values["weights"] + values["tiles"] * self._config.tile_bytes
                if values["weights"] == 0:
                    yield "ends of memories", "weight memory, first: Read_Weights"
                if end > self._weight_bytes - self._config.weight_alignment:
                    yield "ends of memories", "weight memory, last: Read_Weights"
            case Opcode.CONVOLVE:
                for name in _convolution(values, step.register(Register.CONVOLUTION_PLANE)):
                    yield "convolutions", name
            case Opcode.ACTIVATE if values["pooling"] != Pooling.NONE:
                kind = "maximum" if values["pooling"] == Pooling.MAX else "sum"
                window, plane = step.register(Register.POOLING_WINDOW), step.register(Register.POOLING_PLANE)
                for name in _pooling(values["rows"], window, plane):
                    yield "pooling", f"{kind}: {name}"
            case opcode if opcode in _DIRECTIONS:
                stride = step.register(Register.HOST_STRIDE)["stride"]
                yield "host strides", f"{_DIRECTIONS[opcode]}: {self._host_stride(stride)}"

    def _is_last(self, memory: Memory, end: int) -> bool:
        alignment = self._config.host_alignment if memory is Memory.HOST else 1
        return end > self._ends[memory] - alignment

    def _host_stride(self, stride: int) -> str:
        size = self._config.size
        return _HOST_STRIDES[0 if stride == 0 else 1 if stride < size else 2 if stride == size else 3]


def _stride(stride: int) -> str:
    return "2 or more" if 1 < stride < 255 else str(stride)


def _outside(y: np.ndarray, x: np.ndarray, plane: dict[str, int]) -> Iterator[str]:
    """The sides on which any of the positions lie outside a plane."""
    beyond = (y < 0, y >= plane["height"], x < 0, x >= plane["width"])
    yield from (side for side, positions in zip(_SIDES, beyond, strict=True) if positions.any())


def _convolution(values: dict[str, int], plane: dict[str, int]) -> Iterator[str]:
    width = 8 << values["wide_input"]
    y = np.arange(values["height"]) * plane["stride_y"] + values["dy"]
    x = np.arange(values["width"]) * plane["stride_x"] + values["dx"]
    yield from (f"{width} inputs outside {side}" for side in _outside(y, x, plane))
    inside = np.outer((y >= 0) & (y < plane["height"]), (x >= 0) & (x < plane["width"]))
    if not inside.any():
        yield f"{width} inputs all outside"
    if inside.all():
        yield f"{width} inputs all inside"
    yield f"{_stride(plane['stride_y'])} down"
    yield f"{_stride(plane['stride_x'])} across"
    for axis in ("dy", "dx"):
        field = format_named("Convolve").field(axis)
        if values[axis] in (field.minimum, field.maximum):
            yield f"{axis} {'lowest' if values[axis] < 0 else 'highest'}"
    if plane["height"] == 1:
        yield "a plane of one row"
    if plane["height"] == plane["width"] == 1:
        yield "a plane of one position"
    if values["height"] == values["width"] == 1:
        yield "one output"


def _pooling(rows: int, window: dict[str, int], plane: dict[str, int]) -> Iterator[str]:
    output_y, output_x = np.divmod(np.arange(rows), plane["output_width"])
    y = output_y * window["stride_y"] - window["pad_top"]
    x = output_x * window["stride_x"] - window["pad_left"]
    last_y, last_x = y + window["height"] - 1, x + window["width"] - 1
    yield from (f"outside {side}" for side in _outside(np.stack([y, last_y]), np.stack([x, last_x]), plane))
    if ((last_y < 0) | (y >= plane["height"]) | (last_x < 0) | (x >= plane["width"])).any():
        yield "an empty window"
    if window["height"] > plane["height"] and window["width"] > plane["width"]:
        yield "a window larger than the plane"
    pads = window["pad_top"], window["pad_left"]
    if (window["height"], window["width"], *pads) == (plane["height"], plane["width"], 0, 0):
        yield "the whole plane"
    for side, stride in (("height", window["stride_y"]), ("width", window["stride_x"])):
        if stride == 0:
            yield "stride 0"
        elif rows > 1:
            yield "windows that overlap" if stride < window[side] else "windows apart"
    if rows > plane["output_width"] and rows % plane["output_width"]:
        yield "a last row that is not full"
    if 255 in pads:
        yield "padding of 255"
