"""Steps of the activation unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.effects import OUTPUT_BYTES
from openmxu.arch.isa import Operand, OutputFormat, Pooling, Register
from openmxu.arch.numerics import add_scaled, elements, requantize
from openmxu.sim.interpreter.memories import Memories, Step
from openmxu.sim.interpreter.pooling import pooled

__all__ = ["activate"]

Registers = Callable[[Register], Mapping[str, int]]
"""The fields of a configuration register."""

_Source = Callable[[], NDArray[np.int32]]


def activate(memories: Memories, values: Mapping[str, int], registers: Registers) -> Step:
    """Activate with the fields ``values``."""
    source, scaled = _source(memories, values, registers), _scaled(memories, values, registers)
    second = _second_operand(memories, values, registers) if values["operand"] == Operand.MULTIPLY else None
    bias = memories.biases[values["parameters"]]
    table = memories.tables[values["table_number"]] if values["table"] else None
    count = OUTPUT_BYTES[OutputFormat(values["output"])]
    first = values["unified_buffer"]
    target = memories.unified_buffer[first : first + count * values["rows"]]

    def step() -> None:
        # int32 arrays wrap where they are added and multiplied, as the hardware does.
        total = source() + bias
        if second is not None:
            total *= second()
        result = total if scaled is None else scaled(total)
        if table is not None:
            result = table[result & 0xFF]
        _write(result, target, count)

    return step


def _write(result: NDArray[np.integer], target: NDArray[np.uint8], count: int) -> None:
    """Write the lowest ``count`` bytes of each result, each into a separate row."""
    if count == 1:
        target[:] = result.astype(np.uint8)
        return
    bytes_ = result.astype("<i4").view(np.uint8).reshape(*result.shape, 4)[:, :, :count]
    target[:] = bytes_.transpose(0, 2, 1).reshape(target.shape)


def _source(memories: Memories, values: Mapping[str, int], registers: Registers) -> _Source:
    """Reads the values that the bias is added to, (rows, S)."""
    window, plane = registers(Register.POOLING_WINDOW), registers(Register.POOLING_PLANE)
    pooling, rows, first = values["pooling"], values["rows"], values["source"]
    count = rows if pooling == Pooling.NONE else plane["height"] * plane["width"]
    if values["from_unified_buffer"]:
        read = _elements(memories, first, count, registers(Register.SOURCE_FORMAT))
    else:
        accumulators = memories.accumulators[first : first + count]
        read = lambda: accumulators  # noqa: E731
    if pooling == Pooling.NONE:
        return read
    return lambda: pooled(read(), window, plane, rows, maximum=pooling == Pooling.MAX)


def _second_operand(memories: Memories, values: Mapping[str, int], registers: Registers) -> _Source:
    first = registers(Register.OPERAND_ADDRESS)["unified_buffer"]
    return _elements(memories, first, values["rows"], registers(Register.OPERAND_FORMAT))


def _elements(memories: Memories, first: int, count: int, format: Mapping[str, int]) -> _Source:
    wide = bool(format["wide"])
    bytes_ = memories.unified_buffer[first : first + (count << wide)]
    return lambda: elements(bytes_, format["zero_point"], bool(format["signed"]), wide)


def _scaled(
    memories: Memories, values: Mapping[str, int], registers: Registers
) -> Callable[[NDArray[np.int32]], NDArray[np.int32]] | None:
    """Scales, rounds and limits totals; ``None`` where they are written as they are."""
    if values["output"] == OutputFormat.INT32:
        return None
    scale = memories.scales[values["parameters"]]
    format = registers(Register.OUTPUT_FORMAT)
    limits = format["zero_point"], format["minimum"], format["maximum"]
    if values["operand"] != Operand.ADD:
        return lambda total: requantize(total, scale, *limits)
    second = _second_operand(memories, values, registers)
    second_scale = np.array(registers(Register.OPERAND_SCALE)["scale"], np.uint32).view(np.float32)
    return lambda total: add_scaled(total, scale, second(), second_scale, *limits)
