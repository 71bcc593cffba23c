"""LSTM as a recurrent cell: ``c = f · c + i · g``, ``h = o · tanh(c)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.operations import Result
from openmxu.compiler.recurrent.cell import BYTE, INPUT, UNSIGNED_BYTE, WORD, Phase, Recurrent, Step, Sum
from openmxu.compiler.recurrent.encoding import (
    SIGMOID_LEVELS,
    TANH_LEVELS,
    Operand,
    Weights,
    encode,
    sigmoid_table,
    tanh_table,
)

__all__ = ["CELL", "HIDDEN", "LstmScales", "lstm"]

HIDDEN, CELL = "h", "c"

_GATES = "iofc"
"""The order of ONNX; ``c`` is the candidate, called ``g`` here."""


@dataclass(frozen=True)
class LstmScales:
    """What 1 means: of the input, of the int8 hidden state, of the int16 cell state, and of the tables' int8 inputs."""

    input: float
    hidden: float
    cell: float
    sigmoid: float
    tanh: float


def lstm(
    *,
    weights: Weights,
    recurrence: Weights,
    bias: NDArray[np.float64],
    scales: LstmScales,
    input_largest: int,
    **common: Any,
) -> Recurrent:
    """The cell for ONNX's W and R, (4 · units, inputs) and (4 · units, units), and the sum of its biases.

    Parameters
    ----------
    input_largest
        Largest magnitude of an input minus its zero point.
    common
        What every recurrent operation has: name, tensors, how the input is read.
    """
    units = recurrence.integers.shape[1]
    sums, steps = [], []
    tables = {"sigmoid": sigmoid_table(scales.sigmoid), "tanh": tanh_table(scales.tanh)}
    operands = Operand(scales.input, input_largest), Operand(scales.hidden, 128)
    for index, gate in enumerate(_GATES):
        rows = slice(index * units, (index + 1) * units)
        parts = [
            (Weights(item.integers[rows], item.scale[rows]), operand)
            for item, operand in zip((weights, recurrence), operands, strict=True)
        ]
        encoded = encode(parts, bias[rows])
        sums.append(Sum(f"{gate} sum", dict(zip((INPUT, HIDDEN), encoded.weights, strict=True))))
        kind, step = ("tanh", scales.tanh) if gate == "c" else ("sigmoid", scales.sigmoid)
        result = Result((encoded.scale / step).astype(np.float32), 0, -128, 127, tables[kind])
        steps.append(Step(target=_name(gate), source=f"{gate} sum", bias=encoded.bias, result=result))
    steps += [
        Step(target="f·c", source="f", operand=CELL, multiplies=True, result=_word(1 / SIGMOID_LEVELS)),
        Step(
            target="i·g",
            source="i",
            operand="g",
            multiplies=True,
            result=_word(1 / (SIGMOID_LEVELS * TANH_LEVELS * scales.cell)),
        ),
        Step(target=CELL, source="f·c", operand="i·g", result=_word(1.0)),
        Step(
            target="tanh c",
            source=CELL,
            result=Result(np.array(scales.cell / scales.tanh, np.float32), 0, -128, 127, tables["tanh"]),
        ),
        Step(
            target=HIDDEN,
            source="o",
            operand="tanh c",
            multiplies=True,
            result=Result(np.array(1 / (SIGMOID_LEVELS * TANH_LEVELS * scales.hidden), np.float32), 0, -128, 127),
        ),
    ]
    formats = dict.fromkeys("iof", UNSIGNED_BYTE) | dict.fromkeys(("g", "tanh c", HIDDEN), BYTE)
    formats |= dict.fromkeys(("f·c", "i·g", CELL), WORD)
    return Recurrent(
        cell="lstm",
        units=units,
        phases=(Phase(tuple(sums), tuple(steps)),),
        formats=formats,
        carried=(HIDDEN, CELL),
        hidden=HIDDEN,
        **common,
    )


def _name(gate: str) -> str:
    return "g" if gate == "c" else gate


def _word(scale: float) -> Result:
    return Result(np.array(scale, np.float32), 0, -(1 << 15), (1 << 15) - 1)
