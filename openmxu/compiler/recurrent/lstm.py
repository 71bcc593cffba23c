"""LSTM as a recurrent cell: ``c = f · c + i · g``, ``h = o · tanh(c)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.operations import Result
from openmxu.compiler.recurrent.cell import BYTE, INPUT, UNSIGNED_BYTE, WORD, Phase, Recurrent, Step, Sum
from openmxu.compiler.recurrent.encoding import (
    FINE_LEVELS,
    HALF_LEVELS,
    HIGH_FACTOR,
    SIGMOID_LEVELS,
    Encoded,
    Operand,
    Weights,
    encode,
)
from openmxu.compiler.recurrent.results import byte, fine_sigmoid_results, half_tanh_results, sigmoid_result, word

__all__ = ["CELL", "HIDDEN", "LstmScales", "lstm"]

HIDDEN, CELL = "h", "c"

_GATES = "iofg"
"""In the order of ONNX, which calls the last one c."""


@dataclass(frozen=True)
class LstmScales:
    """What 1 means: of the input, of the int8 hidden state, of the int16 cell state, and of the inputs of the tables.

    ``sigmoid`` is for input and output gate, ``memory`` for the forget gate, ``tanh`` for the halves of hyperbolic
    tangents.
    """

    input: float
    hidden: float
    cell: float
    sigmoid: float
    memory: float
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
    operands = Operand(scales.input, input_largest), Operand(scales.hidden, 128)
    gates: dict[str, Encoded] = {}
    for index, gate in enumerate(_GATES):
        rows = slice(index * units, (index + 1) * units)
        parts = [
            (Weights(item.integers[rows], item.scale[rows]), operand)
            for item, operand in zip((weights, recurrence), operands, strict=True)
        ]
        gates[gate] = encode(parts, bias[rows])
    sums = tuple(
        Sum(f"{gate} sum", dict(zip((INPUT, HIDDEN), encoded.weights, strict=True))) for gate, encoded in gates.items()
    )

    def activated(gate: str, target: str, result: Result) -> Step:
        return Step(target=target, source=f"{gate} sum", bias=gates[gate].bias, result=result)

    high, low = fine_sigmoid_results(gates["f"].scale, scales.memory)
    positive, negative = half_tanh_results(gates["g"].scale, scales.tanh)
    positive_c, negative_c = half_tanh_results(np.array(scales.cell), scales.tanh)
    gated = (
        activated("i", "i", sigmoid_result(gates["i"].scale, scales.sigmoid)),
        activated("o", "o", sigmoid_result(gates["o"].scale, scales.sigmoid)),
        activated("f", "f high", high),
        activated("f", "f low", low),
        activated("g", "g positive", positive),
        activated("g", "g negative", negative),
    )
    product = 1 / (SIGMOID_LEVELS * HALF_LEVELS)
    # The table that is there already comes first.
    remembered = (
        Step(target="f·c", source="f", operand=CELL, multiplies=True, result=word(1 / FINE_LEVELS)),
        Step(target="i·g", source="g", operand="i", multiplies=True, result=word(product / scales.cell)),
        Step(target=CELL, source="f·c", operand="i·g", result=word(1.0)),
        Step(target="tanh c negative", source=CELL, result=negative_c),
        Step(target="tanh c positive", source=CELL, result=positive_c),
    )
    hidden = Step(target=HIDDEN, source="tanh c", operand="o", multiplies=True, result=byte(product / scales.hidden))
    phases = (
        Phase(sums, gated),
        Phase(
            (
                Sum("f", factors={"f high": HIGH_FACTOR, "f low": 1}),
                Sum("g", factors={"g positive": 1, "g negative": -1}),
            ),
            remembered,
        ),
        Phase((Sum("tanh c", factors={"tanh c positive": 1, "tanh c negative": -1}),), (hidden,)),
    )
    formats = dict.fromkeys(("i", "o", "f high", "g positive", "g negative"), UNSIGNED_BYTE)
    formats |= dict.fromkeys(("tanh c positive", "tanh c negative"), UNSIGNED_BYTE)
    formats |= dict.fromkeys(("f low", HIDDEN), BYTE) | dict.fromkeys(("f·c", "i·g", CELL), WORD)
    return Recurrent(
        cell="lstm",
        units=units,
        phases=phases,
        formats=formats,
        carried=(HIDDEN, CELL),
        hidden=HIDDEN,
        **common,
    )
