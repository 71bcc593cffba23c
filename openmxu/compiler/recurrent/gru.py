"""GRU as a recurrent cell: ``h = z · h + (1 - z) · n``."""

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
    Encoded,
    Operand,
    Weights,
    encode,
    sigmoid_table,
    tanh_table,
)

__all__ = ["HIDDEN", "STATE", "STATE_STEPS", "GruScales", "gru"]

HIDDEN, STATE = "h", "state"
"""The state in int8, which the array multiplies, and in int16, which steps add to."""

STATE_STEPS = 256
"""Steps of the int16 state in one of the int8 state."""

_RESET_STEPS = 16
"""Steps of ``r · (R h + b)`` in one of the table's inputs. Its 16 bits reach 16 times as far as the table, because the
input's part of the sum may have the other sign."""


@dataclass(frozen=True)
class GruScales:
    """What 1 means: of the input, of the int8 hidden state, and of the tables' int8 inputs."""

    input: float
    hidden: float
    sigmoid: float
    tanh: float


def gru(
    *,
    weights: Weights,
    recurrence: Weights,
    bias: NDArray[np.float64],
    recurrence_bias: NDArray[np.float64],
    linear_before_reset: bool,
    scales: GruScales,
    input_largest: int,
    **common: Any,
) -> Recurrent:
    """The cell for ONNX's W and R, (3 · units, inputs) and (3 · units, units), and its biases, (3 · units,).

    Parameters
    ----------
    linear_before_reset
        The reset gate comes behind the product of state and weights, rather than before it.
    input_largest
        Largest magnitude of an input minus its zero point.
    common
        What every recurrent operation has: name, tensors, how the input is read.
    """
    units = recurrence.integers.shape[1]
    x, h = Operand(scales.input, input_largest), Operand(scales.hidden, 128)
    tables = {"sigmoid": sigmoid_table(scales.sigmoid), "tanh": tanh_table(scales.tanh)}

    def part(item: Weights, gate: int) -> Weights:
        rows = slice(gate * units, (gate + 1) * units)
        return Weights(item.integers[rows], item.scale[rows])

    def biases(item: NDArray[np.float64], gate: int) -> NDArray[np.float64]:
        return item[gate * units : (gate + 1) * units]

    def both(gate: int) -> Encoded:
        total = biases(bias, gate) + biases(recurrence_bias, gate)
        return encode([(part(weights, gate), x), (part(recurrence, gate), h)], total)

    def tabulated(encoded: Encoded, source: str, target: str, kind: str, **operand: Any) -> Step:
        scale = scales.tanh if kind == "tanh" else scales.sigmoid
        result = Result((encoded.scale / scale).astype(np.float32), 0, -128, 127, tables[kind])
        return Step(target=target, source=source, bias=encoded.bias, result=result, **operand)

    sums, steps = [], []
    for index, gate in enumerate("zr"):
        encoded = both(index)
        sums.append(Sum(f"{gate} sum", dict(zip((INPUT, HIDDEN), encoded.weights, strict=True))))
        steps.append(tabulated(encoded, f"{gate} sum", gate, "sigmoid"))
    update = _update(scales)
    formats = {"z": UNSIGNED_BYTE, "r": UNSIGNED_BYTE, "n": BYTE, HIDDEN: BYTE}
    formats |= dict.fromkeys(("z·h", "(1-z)·n", STATE), WORD)
    if linear_before_reset:
        ahead = encode([(part(weights, 2), x)], biases(bias, 2))
        behind = encode([(part(recurrence, 2), h)], biases(recurrence_bias, 2), factor=SIGMOID_LEVELS)
        sums += [Sum("n sum", {INPUT: ahead.weights[0]}), Sum("R·h sum", {HIDDEN: behind.weights[0]})]
        factor = _RESET_STEPS / (SIGMOID_LEVELS * scales.tanh)
        result = Result((behind.scale * factor).astype(np.float32), 0, -(1 << 15), (1 << 15) - 1)
        steps.append(
            Step(target="r·R·h", source="R·h sum", bias=behind.bias, operand="r", multiplies=True, result=result)
        )
        reset = {"operand": "r·R·h", "operand_scale": np.float32(1 / _RESET_STEPS)}
        steps.append(tabulated(ahead, "n sum", "n", "tanh", **reset))
        formats["r·R·h"] = WORD
        phases = (Phase(tuple(sums), (*steps, *update)),)
    else:
        result = _byte(1 / (SIGMOID_LEVELS * STATE_STEPS))
        steps.append(Step(target="r·h", source="r", operand=STATE, multiplies=True, result=result))
        total = biases(bias, 2) + biases(recurrence_bias, 2)
        encoded = encode([(part(weights, 2), x), (part(recurrence, 2), h)], total)
        candidate = Sum("n sum", dict(zip((INPUT, "r·h"), encoded.weights, strict=True)))
        formats["r·h"] = BYTE
        behind = (tabulated(encoded, "n sum", "n", "tanh"), *update)
        phases = (Phase(tuple(sums), tuple(steps)), Phase((candidate,), behind))
    return Recurrent(
        cell="gru",
        units=units,
        phases=phases,
        formats=formats,
        carried=(STATE, HIDDEN),
        hidden=HIDDEN,
        prologue=(update[-1],),
        **common,
    )


def _update(scales: GruScales) -> tuple[Step, ...]:
    """The new state of z and n."""
    state = scales.hidden / STATE_STEPS
    return (
        Step(target="z·h", source="z", operand=STATE, multiplies=True, result=_word(1 / SIGMOID_LEVELS)),
        Step(
            target="(1-z)·n",
            source="z",
            # z - 1 is negative; so is the scale.
            bias=np.array(-SIGMOID_LEVELS, np.int32),
            operand="n",
            multiplies=True,
            result=_word(-1 / (SIGMOID_LEVELS * TANH_LEVELS * state)),
        ),
        Step(target=STATE, source="z·h", operand="(1-z)·n", result=_word(1.0)),
        Step(target=HIDDEN, source=STATE, result=_byte(1 / STATE_STEPS)),
    )


def _byte(scale: float) -> Result:
    return Result(np.array(scale, np.float32), 0, -128, 127)


def _word(scale: float) -> Result:
    return Result(np.array(scale, np.float32), 0, -(1 << 15), (1 << 15) - 1)
