"""``openmxu quantize``."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import openmxu
from openmxu.cli.errors import InputError, RunError
from openmxu.cli.files import STANDARD_STREAM, check_readable, check_writable, read_arrays, write_output
from openmxu.cli.options import JsonOption
from openmxu.cli.report import print_json, print_rows, working
from openmxu.compiler import CompileError
from openmxu.program import InputError as CalibrationError
from openmxu.quantizer import ACTIVATIONS

__all__ = ["quantize_command"]

_Activations = StrEnum("_Activations", [(name.upper(), name) for name in ACTIVATIONS])  # type: ignore[misc]  # its members are data
_DEFAULT = _Activations(ACTIVATIONS[0])


def quantize_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Float ONNX model.")],
    calibration: Annotated[
        Path, typer.Option("--calibration", "-c", metavar="FILE", help="Typical inputs: .npy, or by name .npz.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Model to write; - is stdout.")],
    activations: Annotated[
        _Activations, typer.Option("--activations", metavar="TYPE", help=f"{' or '.join(ACTIVATIONS)}.")
    ] = _DEFAULT,
    json: JsonOption = False,
) -> None:
    """Quantize a float model with ONNX Runtime, for openmxu run and openmxu compile.

    Activations get the ranges that they have on the calibration data; weights become int8.
    """
    if json and output == STANDARD_STREAM:
        raise InputError("--json and --output - exclude each other: both print on stdout")
    check_readable(model)
    check_writable(output)
    inputs = read_arrays(calibration)
    with working(f"Quantizing {model.name}"):
        try:
            quantized = openmxu.quantize(model, inputs, activations=activations.value)
        except CalibrationError as error:
            raise InputError(f"{calibration}: {error}") from None
        except CompileError as error:
            raise InputError(f"{model}: {error}") from None
        except ImportError as error:
            raise RunError(str(error)) from None
    write_output(output, quantized.SerializeToString(deterministic=True))
    operators = Counter(node.op_type for node in quantized.graph.node)
    for name in ("QuantizeLinear", "DequantizeLinear"):
        del operators[name]
    if json:
        count = len(next(iter(inputs.values())) if isinstance(inputs, dict) else inputs)
        print_json({"activations": activations.value, "calibration_inputs": count, "operators": operators})
    elif output != STANDARD_STREAM:
        computing = ", ".join(f"{count} {name}" for name, count in operators.items())
        print_rows([("model", str(output)), ("activations", activations.value), ("operators", computing)])
