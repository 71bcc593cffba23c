"""``openmxu trace``."""

from __future__ import annotations

import json as json_text
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import STANDARD_STREAM, check_writable, read_arrays, write_output
from openmxu.cli.options import (
    DEFAULT_LATENCY,
    BatchOption,
    DeviceName,
    HostRateOption,
    JsonOption,
    LatencyOption,
    OutputOption,
    ShapeOption,
    WeightRateOption,
    read_shapes,
)
from openmxu.cli.programs import check_predicted, load_program, naming_inputs, open_device
from openmxu.cli.report import print_json, print_rows, working

__all__ = ["trace_command"]


class _Source(StrEnum):
    VERILATOR = "verilator"
    MODEL = "model"


@configured
def trace_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Quantized ONNX model, or a compiled program.")],
    output: OutputOption,
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="Input (batch, ...) as .npy; several by name as .npz."),
    ] = None,
    device: Annotated[
        _Source,
        typer.Option(
            "--device", metavar="NAME", help="verilator: recorded from the RTL. model: predicted, which needs no input."
        ),
    ] = _Source.VERILATOR,
    with_model: Annotated[
        bool, typer.Option("--model", help="Add the cycle model's prediction as a second process.")
    ] = False,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    json: JsonOption = False,
) -> None:
    """Write when each instruction was in its unit, for Perfetto (ui.perfetto.dev) or chrome://tracing.

    Of more inputs than the program's batch, only the first batch is run. 1 cycle is 1 µs of the trace.
    """
    if json and output == STANDARD_STREAM:
        raise InputError("--json and --output - exclude each other: both print on stdout")
    if device is _Source.VERILATOR and source is None:
        raise InputError("--device verilator needs --input; --device model predicts without one")
    check_writable(output)
    inputs = None if source is None else read_arrays(source)
    rates = {"host_rate": host_rate, "weight_rate": weight_rate}
    program = load_program(model, choice, batch, shapes=read_shapes(shape), rates=rates)
    if source is not None and inputs is not None:
        with naming_inputs(source):
            program.check_inputs(inputs)
    if program.config.features.is_sequential and device is _Source.VERILATOR:
        raise InputError("a core of the profile lite cannot be recorded: it executes one instruction after the other")
    check_predicted(program.config)

    from openmxu.profiling import predicted_timeline, recorded_timeline
    from openmxu.profiling.trace import chrome_trace

    memories = {"memory_latency": memory_latency, **rates}
    timelines = []
    if inputs is not None and device is _Source.VERILATOR:
        with open_device(DeviceName.VERILATOR, program.config, **memories) as opened:
            with working(f"Running {model.name}"):
                timelines.append(recorded_timeline(program, opened, inputs))
    if with_model or device is _Source.MODEL:
        with working("Predicting cycles"):
            latency = memory_latency or DEFAULT_LATENCY
            predicted = predicted_timeline(program, memory_latency=latency, **rates)
            timelines.append(predicted)
    trace = chrome_trace(program, timelines)
    write_output(output, json_text.dumps(trace, allow_nan=False, separators=(",", ":")).encode())
    cycles = {timeline.source: timeline.cycles for timeline in timelines}
    if json:
        print_json({"instructions": len(program.instructions), "cycles": cycles, "events": len(trace["traceEvents"])})
    elif output != STANDARD_STREAM:
        counts = [(f"cycles, {name}", f"{count:,}") for name, count in cycles.items()]
        print_rows([("trace", str(output)), ("instructions", f"{len(program.instructions):,}"), *counts])
