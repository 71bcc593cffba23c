"""``openmxu run``, ``openmxu compile`` and ``openmxu quantize``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import openmxu
from openmxu.cli.boards.opening import board_configuration, opened, opened_board
from openmxu.cli.commands.instructions import run_instructions
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError, RunError, as_typed, one_line
from openmxu.cli.files import (
    STANDARD_STREAM,
    archive_bytes,
    array_bytes,
    check_folder,
    check_readable,
    check_writable,
    read_arrays,
    saving,
    write_folder,
    write_output,
)
from openmxu.cli.options import (
    DEFAULT_LATENCY,
    INTERPRETER,
    AddressOption,
    BatchOption,
    BaudOption,
    DeviceAddress,
    EffortOption,
    HostMemoryOption,
    HostMemoryOutputOption,
    HostRateOption,
    JsonOption,
    LatencyOption,
    PortOption,
    ShapeOption,
    WeightRateOption,
    WeightsOption,
    read_address,
    read_shapes,
)
from openmxu.cli.programs import check_predicted, compile_model, is_program, load_program, measured_run, naming_inputs
from openmxu.cli.report import print_json, print_report, print_rows, working
from openmxu.cli.waveforms import shown_cycles, waveform_row, write_companions
from openmxu.embedded import ExportError, c_files, c_name, driver_files, program_image
from openmxu.program import InputError as CalibrationError
from openmxu.program import Program
from openmxu.reporting import SegmentReport, segment_reports
from openmxu.segments.host_segment import HostSegment

if TYPE_CHECKING:
    import onnx

__all__ = ["compile_command", "host_nodes", "quantize_command", "run_command"]


class ExportFormat(StrEnum):
    """Formats of programs for the driver in C."""

    C = "c"
    BIN = "bin"


_NAMED = 4
"""Nodes of a segment that its line names."""


@configured
def run_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Quantized ONNX model, or a compiled program; with --host-memory assembly (.s) or instruction words.",
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="Input (batch, ...) as .npy; several by name as .npz."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output as .npy; all by name as .npz. - is stdout."),
    ] = None,
    device: AddressOption = INTERPRETER,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    waves: Annotated[
        Path | None,
        typer.Option(
            *("--waves", "--waveform"),
            metavar="FILE",
            help="Write all signals as .vcd or .fst, and lists of signals for GTKWave and Surfer beside it.",
        ),
    ] = None,
    waves_cycles: Annotated[
        str | None, typer.Option("--waves-cycles", metavar="FROM:TO", help="Only these cycles of the program.")
    ] = None,
    waves_instruction: Annotated[
        int | None,
        typer.Option(
            "--waves-instruction",
            metavar="N",
            min=0,
            help="Only the cycles of this instruction of the first execution, counted from 0, as openmxu disassemble "
            "--numbers and openmxu trace number them.",
        ),
    ] = None,
    port: PortOption = None,
    baud: BaudOption = None,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    host_memory: HostMemoryOption = None,
    weights: WeightsOption = None,
    host_memory_output: HostMemoryOutputOption = None,
    json: JsonOption = False,
) -> None:
    """Run a model on an array of inputs; with --host-memory bare instructions on the contents of memories."""
    rates = {"host_rate": host_rate, "weight_rate": weight_rate}
    memories = {"memory_latency": memory_latency, **rates}
    opening: dict[str, object] = {"waves": waves, "port": port, "baud": baud, **memories}
    if host_memory is not None:
        for_models = {"input": source, "output": output, "batch": batch, "shape": shape}
        for name, value in for_models.items():
            if value is not None:
                raise InputError(f"--{name} is for models, and --host-memory for bare instructions")
        if waves_instruction is not None:
            raise InputError("--waves-instruction is for models: bare instructions take --waves-cycles")
        opening["waves_cycles"] = shown_cycles(None, waves, waves_cycles, None)
        run_instructions(model, host_memory, weights, host_memory_output, choice, device, json, **opening)
        return
    if weights is not None or host_memory_output is not None:
        raise InputError(f"--{'host-memory-output' if weights is None else 'weights'} needs --host-memory")
    if source is None or output is None:
        missing = "--input" if source is None else "--output"
        raise InputError(f"Missing option '{missing}'; bare instructions need --host-memory instead")
    if json and output == STANDARD_STREAM:
        raise InputError("--json and --output - exclude each other: both print on stdout")
    check_writable(output)
    inputs, shapes = read_arrays(source), read_shapes(shape)
    check_readable(model)
    with opened_board(device, choice, **opening) as board:
        own = None if board is None else board.config
        program = load_program(model, choice, batch, shapes=shapes, board=own, rates=rates)
        # Check before opening a simulation, which may be built, and starts the waveform file.
        with naming_inputs(source):
            program.check_inputs(inputs)
        opening["waves_cycles"] = cycles = shown_cycles(program, waves, waves_cycles, waves_instruction)
        is_archive = output.suffix == ".npz"
        if len(program.outputs) > 1 and not is_archive:
            names = ", ".join(spec.name for spec in program.outputs)
            raise InputError(f"{model} has the outputs {names}: --output must be an .npz file, which holds all of them")
        with opened(board, device, program.config, **opening) as running, naming_inputs(source):
            results, measurement = measured_run(program, running, inputs, f"Running {model.name}")
    if waves is not None:
        write_companions(waves, program.config, program.instructions)
    write_output(output, archive_bytes(results) if is_archive else array_bytes(next(iter(results.values()))))
    if json:
        arrays = [{"name": name, "shape": result.shape, "type": result.dtype.name} for name, result in results.items()]
        print_json({"device": device.name.value, **measurement.as_dict(), "outputs": arrays})
    elif output != STANDARD_STREAM:
        lines = [
            ("output", f"{output}: {name}, {result.dtype}, {' × '.join(map(str, result.shape))}")
            for name, result in results.items()
        ]
        if waves is not None:
            lines.append(waveform_row(waves, cycles, program, waves_instruction))
        print_rows([*lines, *measurement.as_rows()])


@configured
def compile_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Quantized ONNX model; with --export or without --output also a compiled program."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Program file to write; with --export c a folder."),
    ] = None,
    export: Annotated[
        ExportFormat | None,
        typer.Option(
            "--export",
            metavar="FORMAT",
            help="Write the program for the driver in C. c: as C source, and the driver with it. bin: as a file to be "
            "loaded.",
        ),
    ] = None,
    choice: ConfigChoice = DEFAULTS,
    device: Annotated[
        DeviceAddress | None,
        typer.Option(
            "--device",
            metavar="NAME",
            parser=read_address,
            help="serial:PORT: compile for the configuration of the board at this port.",
        ),
    ] = None,
    baud: BaudOption = None,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a model of which the host would compute anything.")
    ] = False,
    effort: EffortOption = None,
    report: Annotated[bool, typer.Option("--report", help="Report the cost and the limit of each layer.")] = False,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    json: JsonOption = False,
) -> None:
    """Compile a model to a program, which openmxu run takes in its place.

    Rates are those of the memories to plan for: the program runs, and computes the same, with any others. The report's
    cycles are predicted by a model of the hardware.
    """
    if output is None and export is not None:
        raise InputError("--export needs --output: a folder for c, a file for bin")
    if output is None and not report:
        raise InputError("there is nothing to do; give --output FILE, --report, or both")
    rates = {"host_rate": host_rate, "weight_rate": weight_rate}
    if memory_latency is not None and not report:
        raise InputError("--memory-latency needs --report")
    if baud is not None and device is None:
        raise InputError("--baud needs --device serial:PORT")
    shapes = read_shapes(shape)
    check_readable(model)
    board = None if device is None else board_configuration(device, choice, baud=baud)
    if report and not is_program(model):
        check_predicted(board or choice.config())  # before a file is written
    if output is None:
        program = load_program(model, choice, batch, strict, shapes, board, rates, effort)
    else:
        if output == STANDARD_STREAM:
            raise InputError("a program cannot be written to stdout; --output needs the name of a file")
        check_folder(output) if export is ExportFormat.C else check_writable(output)
        if export is not None and is_program(model):
            for name, rate in rates.items():
                if rate is not None and not report:
                    raise InputError(f"{as_typed(name)} needs --report: {model} is compiled already")
            program = load_program(model, choice, batch, strict, shapes, board, effort=effort)
        else:
            program = compile_model(model, board or choice.config(), batch, strict, shapes, effort, rates)
        if export is not None:
            _write_export(model, program, export, output)
        else:
            with saving(output) as path:
                program.save(path)
    layers = None
    if report:
        check_predicted(program.config)
        with working("Predicting cycles"):
            layers = openmxu.report(program, memory_latency=memory_latency or DEFAULT_LATENCY, **rates)
    facts = {
        "size": program.config.size,
        "batch": program.batch,
        "instructions": len(program.instructions),
        "weight_bytes": len(program.weights),
        "host_bytes": program.host_bytes,
        "multiply_adds": program.multiply_adds,
    }
    segments = segment_reports(program)
    if json:
        listed = {"device_share": program.device_share, "segments": [dataclasses.asdict(item) for item in segments]}
        print_json(facts | listed | ({} if layers is None else {"report": layers.as_dict()}))
    else:
        numbers = [(name.replace("_", " "), f"{value:,}") for name, value in facts.items()]
        numbers.append(("share of the device", f"{program.device_share:.2%} of all multiply-adds"))
        parts = [(f"segment {number}", _described(segment)) for number, segment in enumerate(segments, 1)]
        print_rows([*([] if output is None else [("program", str(output))]), *numbers, *parts])
        if layers is not None:
            typer.echo()
            print_report(layers)


def _write_export(model: Path, program: Program, export: ExportFormat, output: Path) -> None:
    """Write a program for the driver in C.

    Raises
    ------
    InputError
        The driver cannot run it, or a file cannot be written.
    """
    try:
        if export is ExportFormat.C:
            write_folder(output, {**driver_files(), **c_files(program, c_name(model.stem))})
        else:
            write_output(output, program_image(program))
    except ExportError as error:
        raise InputError(f"{model}: {error}") from None


def _described(segment: SegmentReport) -> str:
    """A segment in one line: the host's nodes, as far as there is room, or the number of the device's layers."""
    work = f"{segment.multiply_adds:,} multiply-adds"
    if segment.where == "device":
        return f"device: {len(segment.nodes)} layers, {work}"
    return f"host: {_listed(segment.nodes)}, {work}"


def _listed(nodes: Sequence[str]) -> str:
    """The first nodes by name, and the number of the others."""
    named, rest = nodes[:_NAMED], nodes[_NAMED:]
    return f"{', '.join(named)}{f' and {len(rest)} more' if rest else ''}"


class _Activations(StrEnum):
    """Types of :data:`openmxu.quantizer.ACTIVATIONS`."""

    UINT8 = "uint8"
    INT8 = "int8"


def quantize_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Float ONNX model.")],
    calibration: Annotated[
        Path, typer.Option("--calibration", "-c", metavar="FILE", help="Typical inputs: .npy, or by name .npz.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Model to write; - is stdout.")],
    activations: Annotated[
        _Activations, typer.Option("--activations", metavar="TYPE", help=f"{' or '.join(_Activations)}.")
    ] = _Activations.UINT8,
    json: JsonOption = False,
) -> None:
    """Quantize a float model with ONNX Runtime, for openmxu run and openmxu compile.

    Activations get the ranges that they have on the calibration data; weights become int8. What no core can compute is
    listed as the host's; a configuration with small memories may leave more to it.
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
        except openmxu.CompileError as error:
            raise InputError(f"{model}: {error}") from None
        except ImportError as error:
            raise RunError(str(error)) from None
    write_output(output, quantized.SerializeToString(deterministic=True))
    operators = Counter(node.op_type for node in quantized.graph.node)
    for name in ("QuantizeLinear", "DequantizeLinear"):
        del operators[name]
    host, problem = host_nodes(quantized)
    if json:
        count = len(next(iter(inputs.values())) if isinstance(inputs, dict) else inputs)
        facts = {"activations": activations.value, "calibration_inputs": count, "operators": operators}
        print_json({**facts, "host": host, "problem": problem})
    elif output != STANDARD_STREAM:
        computing = ", ".join(f"{count} {name}" for name, count in operators.items())
        rows = [("model", str(output)), ("activations", activations.value), ("operators", computing)]
        print_rows([*rows, ("on the host", problem or _listed(host) or "nothing")])


def host_nodes(model: onnx.ModelProto) -> tuple[list[str], str | None]:
    """The nodes that no device computes, and why the model cannot be compiled if it cannot."""
    from openmxu.compiler import import_model

    try:
        segments = import_model(model).segments
    except openmxu.CompileError as error:
        return [], one_line(error)
    return [node for segment in segments if isinstance(segment, HostSegment) for node in segment.nodes], None
