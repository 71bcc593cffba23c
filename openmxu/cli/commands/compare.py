"""``openmxu compare``."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import openmxu
from openmxu.cli.boards.opening import opened, opened_board
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import check_readable, read_arrays
from openmxu.cli.options import (
    INTERPRETER,
    AddressOption,
    BatchOption,
    JsonOption,
    ShapeOption,
    read_shapes,
)
from openmxu.cli.programs import is_program, naming, naming_inputs
from openmxu.cli.report import print_comparison, print_json, working

__all__ = ["compare_command"]


@configured
def compare_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Quantized ONNX model.")],
    source: Annotated[
        Path, typer.Option("--input", "-i", metavar="FILE", help="Input (batch, ...) as .npy; several by name as .npz.")
    ],
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="FILE", help="The right class of every input, integers as .npy.")
    ] = None,
    float_model: Annotated[
        Path | None, typer.Option("--float", metavar="FILE", help="The float model that MODEL was quantized from.")
    ] = None,
    device: AddressOption = INTERPRETER,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the device with ONNX Runtime and the float model: outputs, accuracy, and every layer alone.

    Each layer gets what ONNX Runtime computes in front of it. SQNR is the ratio of a float tensor to the error of its
    quantized form, in decibels.
    """
    from openmxu.comparison import compare
    from openmxu.compiler.onnx.input_shapes import with_shapes
    from openmxu.compiler.onnx.model_file import load_model
    from openmxu.segments.graph_runner import GraphError

    if is_program(model):
        raise InputError(f"{model} is compiled already; compare needs the ONNX model")
    inputs, classes = read_arrays(source), None if labels is None else _read_labels(labels)
    shapes, real = read_shapes(shape), None
    if float_model is not None:
        check_readable(float_model)
        with naming(float_model):
            real = with_shapes(load_model(float_model), shapes)
    with opened_board(device, choice) as board:
        config = choice.config() if board is None else board.config
        with working(f"Compiling {model.name}"), naming(model):
            quantized = load_model(model)
            program = openmxu.compile(quantized, config, batch=batch, shapes=shapes)
            quantized = with_shapes(quantized, shapes)
        with opened(board, device, config) as running, working(f"Comparing {model.name}"):
            try:
                with naming_inputs(source, labels):
                    result = compare(quantized, program, running, inputs, labels=classes, float_model=real)
            except GraphError as error:
                raise InputError(f"ONNX Runtime cannot compute {model} or {float_model}: {error}") from None
    if json:
        layers = None if result.layers is None else [_finite(dataclasses.asdict(layer)) for layer in result.layers]
        facts = {name: value for name, value in vars(result).items() if name != "layers"}
        print_json({**facts, "reason": result.reason, "first": result.first and result.first.name, "layers": layers})
    else:
        print_comparison(result)
    if result.differing:
        raise typer.Exit(1)


def _read_labels(path: Path) -> NDArray[Any]:
    labels = read_arrays(path)
    if not isinstance(labels, np.ndarray):
        raise InputError(f"{path} is an archive; labels are one array, as numpy.save() writes it")
    return labels


def _finite(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer for JSON, which has no infinity: a tensor without noise has no ratio."""
    ratio = layer["sqnr"]
    return layer | {"sqnr": ratio if ratio is None or math.isfinite(ratio) else None}
