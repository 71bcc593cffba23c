"""Random recurrent cells, each as a network."""

from __future__ import annotations

import numpy as np

from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.encoding import Weights
from openmxu.compiler.recurrent.gru import GruScales, gru
from openmxu.compiler.recurrent.lstm import LstmScales, lstm
from openmxu.segments.host_tensor import HostTensor

KINDS = ("lstm", "gru", "gru, linear before reset")


def random_weights(random: np.random.Generator, rows: int, columns: int) -> Weights:
    """Random int8 weights with a scale for each row."""
    real = random.normal(0, 1 / np.sqrt(columns), (rows, columns))
    scale = (np.abs(real).max(axis=1) / 127).astype(np.float32)
    return Weights(np.rint(real / scale[:, np.newaxis]).astype(np.int8), scale)


def random_cell(
    random: np.random.Generator, kind: str, inputs: int, units: int, sequence: bool = True, final: bool = True
) -> Recurrent:
    """A random cell with the input ``x``, the sequence ``y`` and the final hidden state ``y_h``."""
    signed = bool(random.integers(2))
    gates = 4 if kind == "lstm" else 3
    arguments = {
        "name": "cell",
        "sources": ("x",),
        "target": "y" if sequence else "y_h",
        "sequence": "y" if sequence else None,
        "final": {"h": "y_h"} if final else {},
        "input_signed": signed,
        "zero_point": int(random.integers(256)) - (128 if signed else 0),
        "input_largest": 255,
        "weights": random_weights(random, gates * units, inputs),
        "recurrence": random_weights(random, gates * units, units),
        "bias": random.normal(0, 0.5, gates * units),
    }
    if kind == "lstm":
        return lstm(scales=LstmScales(0.02, 1 / 127, 4 / 32768, 6 / 127, 8 / 127, 3 / 255), **arguments)
    return gru(
        recurrence_bias=random.normal(0, 0.5, gates * units),
        linear_before_reset=kind != "gru",
        scales=GruScales(0.02, 1 / 127, 6 / 127, 8 / 127, 3 / 127),
        **arguments,
    )


def cell_network(cell: Recurrent, inputs: int, length: int) -> Network:
    """A network that consists of one cell."""
    units = cell.units
    tensors = {"x": Tensor(length, 1, inputs, cell.input_signed)}
    outputs = []
    for name, shape in ((cell.sequence, (length, units)), (cell.final.get("h"), (units,))):
        if name is not None:
            tensors[name] = Tensor(shape[0] if len(shape) == 2 else 1, 1, units, True)
            outputs.append(Port(HostTensor(name, "int8", shape, units, "int8"), name))
    dtype = "int8" if cell.input_signed else "uint8"
    source = Port(HostTensor("x", dtype, (length, inputs), inputs, dtype), "x")
    return Network((source,), tuple(outputs), tensors, (cell,))
