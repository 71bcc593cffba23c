"""``openmxu evaluate``: the accuracy of a network on a test set."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from openmxu.cli.boards.opening import board_configuration
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import read_arrays
from openmxu.cli.options import (
    INTERPRETER,
    AddressOption,
    BatchOption,
    DeviceName,
    JsonOption,
    LatencyOption,
    ShapeOption,
    read_shapes,
)
from openmxu.cli.percentage import counting
from openmxu.cli.programs import load_program, naming_inputs
from openmxu.cli.report import print_json, print_rows
from openmxu.cli.spreading import SchedulerOption, WorkersOption, spreading

__all__ = ["evaluate_command"]

_MODULES = ("openmxu.cluster.evaluation", "openmxu.sim.interpreter")


@configured
def evaluate_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Quantized ONNX model, or a compiled program.")],
    data: Annotated[
        Path, typer.Option("--data", "-d", metavar="FILE", help="Inputs (batch, ...) as .npy; several by name as .npz.")
    ],
    labels: Annotated[
        Path, typer.Option("--labels", "-l", metavar="FILE", help="The right class of every input, integers as .npy.")
    ],
    device: AddressOption = INTERPRETER,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    memory_latency: LatencyOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    json: JsonOption = False,
) -> None:
    """Count the inputs that a model classifies as they are labelled: the largest number of its first output decides.

    The result is the same on any number of workers; what a worker was computing when it was lost, another one does.
    """
    from openmxu.cluster.evaluation import DeviceChoice, evaluate

    if device.name is DeviceName.SERIAL:
        raise InputError("--device serial is one board, which serves no workers: use openmxu run")
    if device.name is DeviceName.GRPC:
        for option, value in (("workers", workers), ("scheduler", scheduler), ("memory-latency", memory_latency)):
            if value is not None and value != 1:
                raise InputError(f"--{option} is not for --device {device}, which is one device: leave it out")
    if memory_latency is not None and device == INTERPRETER:
        raise InputError("--memory-latency needs --device verilator: the interpreter has no clock")
    inputs, classes = read_arrays(data), read_arrays(labels)
    if not isinstance(classes, np.ndarray):
        raise InputError(f"{labels} is an archive; labels are one array, as numpy.save() writes it")
    options = {} if memory_latency is None else {"memory_latency": memory_latency}
    # Workers first: a scheduler that cannot be reached is reported before the model is compiled, which may take long.
    with spreading(workers, scheduler, _MODULES) as opened:
        board = board_configuration(device, choice) if device.is_board else None
        program = load_program(model, choice, batch, shapes=read_shapes(shape), board=board)
        opened.wait()
        began = time.perf_counter()
        count = len(classes) if classes.ndim else 0
        with naming_inputs(data, labels), counting(f"Evaluating {model.name}", count) as finished:
            result = evaluate(program, inputs, classes, opened, DeviceChoice(str(device), options), finished)
        seconds = time.perf_counter() - began
    if json:
        print_json({"device": device.name.value, **vars(result), "accuracy": result.accuracy, "seconds": seconds})
        return
    rows = [
        ("accuracy", f"{result.accuracy:.4f}"),
        ("correct", f"{result.correct:,} of {result.elements:,}"),
        ("executions", f"{result.executions:,} of a batch of {program.batch}"),
    ]
    clocked = [] if result.cycles is None else [("cycles", f"{result.cycles:,}")]
    print_rows([*rows, *clocked, ("time", f"{seconds:.2f} s")])
