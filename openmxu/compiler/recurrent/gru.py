"""GRU as a recurrent cell: ``h = z · h + (1 - z) · n``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.recurrent.cell import BYTE, INPUT, UNSIGNED_BYTE, WORD, Phase, Recurrent, Step, Sum
from openmxu.compiler.recurrent.encoding import (
    FINE_LEVELS,
    HIGH_FACTOR,
    SIGMOID_LEVELS,
    TANH_LEVELS,
    Encoded,
    Operand,
    Weights,
    encode,
)
from openmxu.compiler.recurrent.results import byte, fine_sigmoid_results, sigmoid_result, tanh_result, word

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
    """What 1 means: of the input, of the int8 hidden state, and of the inputs of the tables.

    ``sigmoid`` is for the reset gate, ``memory`` for the update gate, ``tanh`` for the candidate.
    """

    input: float
    hidden: float
    sigmoid: float
    memory: float
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

    def part(item: Weights, gate: int) -> Weights:
        rows = slice(gate * units, (gate + 1) * units)
        return Weights(item.integers[rows], item.scale[rows])

    def biases(item: NDArray[np.float64], gate: int) -> NDArray[np.float64]:
        return item[gate * units : (gate + 1) * units]

    def both(gate: int) -> Encoded:
        total = biases(bias, gate) + biases(recurrence_bias, gate)
        return encode([(part(weights, gate), x), (part(recurrence, gate), h)], total)

    update, reset = both(0), both(1)
    sums = [
        Sum(f"{gate} sum", dict(zip((INPUT, HIDDEN), encoded.weights, strict=True)))
        for gate, encoded in zip("zr", (update, reset), strict=True)
    ]
    high, low = fine_sigmoid_results(update.scale, scales.memory)
    gates = (
        Step(target="z high", source="z sum", bias=update.bias, result=high),
        Step(target="z low", source="z sum", bias=update.bias, result=low),
        Step(target="r", source="r sum", bias=reset.bias, result=sigmoid_result(reset.scale, scales.sigmoid)),
    )
    z = Sum("z", factors={"z high": HIGH_FACTOR, "z low": 1})
    formats = {"z high": UNSIGNED_BYTE, "z low": BYTE, "r": UNSIGNED_BYTE, "n": BYTE, HIDDEN: BYTE}
    formats |= dict.fromkeys(("z·h", "(1-z)·n", STATE), WORD)
    state_steps = _state_steps(scales)
    if linear_before_reset:
        ahead = encode([(part(weights, 2), x)], biases(bias, 2))
        behind = encode([(part(recurrence, 2), h)], biases(recurrence_bias, 2), factor=SIGMOID_LEVELS)
        sums += [Sum("n sum", {INPUT: ahead.weights[0]}), Sum("R·h sum", {HIDDEN: behind.weights[0]})]
        candidate = (
            Step(
                target="r·R·h",
                source="R·h sum",
                bias=behind.bias,
                operand="r",
                multiplies=True,
                result=word(behind.scale * (_RESET_STEPS / (SIGMOID_LEVELS * scales.tanh))),
            ),
            Step(
                target="n",
                source="n sum",
                bias=ahead.bias,
                operand="r·R·h",
                operand_scale=np.float32(1 / _RESET_STEPS),
                result=tanh_result(ahead.scale, scales.tanh),
            ),
        )
        formats["r·R·h"] = WORD
        phases = (Phase(tuple(sums), (*gates, *candidate)), Phase((z,), state_steps))
    else:
        reset_state = byte(1 / (SIGMOID_LEVELS * STATE_STEPS))
        gates += (Step(target="r·h", source="r", operand=STATE, multiplies=True, result=reset_state),)
        encoded = both(2)
        candidate = Step(target="n", source="n sum", bias=encoded.bias, result=tanh_result(encoded.scale, scales.tanh))
        formats["r·h"] = BYTE
        n = Sum("n sum", dict(zip((INPUT, "r·h"), encoded.weights, strict=True)))
        phases = (Phase(tuple(sums), gates), Phase((n, z), (candidate, *state_steps)))
    return Recurrent(
        cell="gru",
        units=units,
        phases=phases,
        formats=formats,
        carried=(STATE, HIDDEN),
        hidden=HIDDEN,
        prologue=(state_steps[-1],),
        **common,
    )


def _state_steps(scales: GruScales) -> tuple[Step, ...]:
    """The new state of z and n."""
    state = scales.hidden / STATE_STEPS
    return (
        Step(target="z·h", source="z", operand=STATE, multiplies=True, result=word(1 / FINE_LEVELS)),
        Step(
            target="(1-z)·n",
            source="z",
            # z - 1 is negative; so is the scale.
            bias=np.array(-FINE_LEVELS, np.int32),
            operand="n",
            multiplies=True,
            result=word(-1 / (FINE_LEVELS * TANH_LEVELS * state)),
        ),
        Step(target=STATE, source="z·h", operand="(1-z)·n", result=word(1.0)),
        Step(target=HIDDEN, source=STATE, result=byte(1 / STATE_STEPS)),
    )
