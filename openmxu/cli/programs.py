"""Loading and compiling programs, opening devices, and measuring runs, for the commands."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from numpy.typing import NDArray

import openmxu
from openmxu.arch import Config
from openmxu.arch.events import Counter
from openmxu.cli.configuration import ConfigChoice
from openmxu.cli.errors import InputError, as_typed
from openmxu.cli.files import check_readable
from openmxu.cli.options import DEFAULT_EFFORT, DeviceAddress, DeviceName
from openmxu.cli.report import running, working
from openmxu.device import Device
from openmxu.program import InputError as ProgramInputError
from openmxu.program import Program
from openmxu.program_file import ProgramFileError

if TYPE_CHECKING:
    from openmxu.compiler.onnx.input_shapes import Shapes

__all__ = [
    "Measurement",
    "check_predicted",
    "compile_model",
    "is_program",
    "load_program",
    "measured_run",
    "naming",
    "naming_inputs",
    "open_device",
]

_SERIAL_OPTIONS = ("port", "baud")
_MEMORIES = ("memory_latency", "host_rate", "weight_rate")

_PARAMETERS = {"waves": "waveform", "waves_cycles": "waveform_cycles"}
"""Parameters of devices that have another name than the option."""

_ARCHIVE = b"PK\x03\x04"


def is_program(path: Path) -> bool:
    """Whether a file is a compiled program rather than a model.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    check_readable(path)
    with path.open("rb") as stream:
        return stream.read(len(_ARCHIVE)) == _ARCHIVE


def check_predicted(config: Config) -> None:
    """Check that the cycle model knows a core, whose cycles a command is about to predict.

    Raises
    ------
    InputError
        It does not.
    """
    from openmxu.sim import cycle_model

    try:
        cycle_model.check_predicted(config)
    except cycle_model.UnpredictedError as error:
        raise InputError(f"{error}; choose another --profile or --preset") from None


def compile_model(
    path: Path,
    config: Config,
    batch: int | None,
    strict: bool = False,
    shapes: Shapes | None = None,
    effort: int | None = None,
    rates: Mapping[str, Any] | None = None,
) -> Program:
    """Compile an ONNX file, for memories of some ``rates``: ``host_rate`` and ``weight_rate``.

    Without an ``effort`` it is :data:`~openmxu.cli.options.DEFAULT_EFFORT`.

    Raises
    ------
    InputError
        The file cannot be read or compiled.
    """
    check_readable(path)
    effort = DEFAULT_EFFORT if effort is None else effort
    with working(f"Compiling {path.name}"), naming(path):
        return openmxu.compile(path, config, batch=batch, strict=strict, shapes=shapes, effort=effort, **(rates or {}))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A block whose errors about a model become those of this module, with the name of the model's file.

    Raises
    ------
    InputError
        For each :class:`~openmxu.compiler.CompileError`.
    """
    try:
        yield
    except openmxu.CompileError as error:
        message = str(error)
        raise InputError(message if message.startswith(str(path)) else f"{path}: {message}") from None


@contextmanager
def naming_inputs(source: Path, labels: Path | None = None) -> Iterator[None]:
    """A block whose errors about inputs become those of this module, with the name of the file that has them.

    Raises
    ------
    InputError
        For each :class:`~openmxu.program.InputError`; its message begins with the file of labels if it is about those.
    """
    try:
        yield
    except ProgramInputError as error:
        file = labels if labels is not None and str(error).startswith("labels") else source
        raise InputError(f"{file}: {error}") from None


def load_program(
    path: Path,
    choice: ConfigChoice,
    batch: int | None,
    strict: bool = False,
    shapes: Shapes | None = None,
    board: Config | None = None,
    rates: Mapping[str, Any] | None = None,
    effort: int | None = None,
) -> Program:
    """Load a compiled program from a file, or compile the model in it.

    Parameters
    ----------
    board
        The configuration to compile for, in place of the one that ``choice`` says.
    rates
        Of the memories to compile for: ``host_rate`` and ``weight_rate``.
    effort
        As of :func:`compile_model`.

    Raises
    ------
    InputError
        The file cannot be read or compiled, or options or the board contradict the configuration that it was compiled
        for.
    """
    if not is_program(path):
        config = choice.config() if board is None else board
        return compile_model(path, config, batch, strict, shapes, effort, rates)
    try:
        program = Program.load(path)
    except ProgramFileError as error:
        raise InputError(str(error)) from None
    if board is not None:
        _check_compiled(path, program.config, board)
    elif choice.is_given and choice.config() != program.config:
        raise InputError(f"{path} is compiled already, for another configuration of size {program.config.size}")
    if batch is not None and batch != program.batch:
        raise InputError(f"{path} is compiled already, for a batch of {program.batch}")
    if shapes:
        raise InputError(f"{path} is compiled already: all of its dimensions are fixed")
    if effort is not None:
        raise InputError(f"{path} is compiled already: --effort needs a model")
    if strict and program.host_segments:
        raise InputError(f"{path} is compiled already, and the host computes {program.host_segments[0].nodes[0]}")
    return program


def _check_compiled(path: Path, compiled: Config, board: Config) -> None:
    has, asked = board.as_dict(), compiled.as_dict()
    differing = [f"{name} {has[name]}, not {asked[name]}" for name in has if has[name] != asked[name]]
    if differing:
        raise InputError(
            f"{path} is compiled for another configuration than the board's, which has {', '.join(differing)}: compile "
            "the model again, with this --device"
        )


def open_device(device: DeviceAddress | DeviceName, config: Config | None, **options: object) -> Device:
    """Open a device; options that are ``None`` get its defaults.

    Raises
    ------
    InputError
        The device has no such option, or does not accept its value.
    """
    address = device if isinstance(device, DeviceAddress) else DeviceAddress(device)
    name = address.name
    if name is DeviceName.GRPC:
        return _open_remote(address, config, options)
    if address.port is not None:
        if options.get("port") is not None:
            raise InputError(f"--port and --device {address} exclude each other: both say where the board is")
        options["port"] = address.port
    given = {option: value for option, value in options.items() if value is not None}
    of_a_board = [option for option in given if option in _SERIAL_OPTIONS]
    if name is DeviceName.SERIAL:
        if "port" not in given:
            raise InputError("--device serial needs the port of the board, as in --device serial:/dev/ttyUSB1")
        unknown, remedy = (
            [option for option in given if option not in of_a_board],
            "verilator: a board does not have it",
        )
    elif name is DeviceName.INTERPRETER and len(given) > len(of_a_board):
        unknown, remedy = list(given), "verilator: the interpreter has no clock"
    elif name is DeviceName.MODEL and not of_a_board:
        unknown, remedy = [option for option in given if option not in _MEMORIES], "verilator: the cycle model has none"
    elif name is DeviceName.AXI and not of_a_board:
        unknown, remedy = [option for option in given if option in _PARAMETERS], "verilator"
    else:
        unknown, remedy = of_a_board, "serial:PORT"
    if unknown:
        raise InputError(f"{as_typed(unknown[0])} needs --device {remedy}")
    try:
        named = {_PARAMETERS.get(option, option): value for option, value in given.items()}
        return openmxu.open_device(name.value, config, **named)
    except ValueError as error:
        raise InputError(str(error)) from None


def _open_remote(address: DeviceAddress, config: Config | None, options: Mapping[str, object]) -> Device:
    for option, value in options.items():
        if value is not None:
            raise InputError(f"{as_typed(option)} is for the server: its device at {address} is open already")

    def say(message: str) -> None:
        typer.echo(f"openmxu: {message}", err=True)

    try:
        return openmxu.open_device(str(address), config, on_wait=say)
    except ValueError as error:
        raise InputError(str(error)) from None


@dataclass(frozen=True)
class Measurement:
    """The time and work of a run.

    Attributes
    ----------
    multiply_adds
        Number of useful multiply-adds; padding does not count.
    seconds
        Elapsed wall-clock time.
    counters
        The device's counters by lower-case name; empty if it has no clock.
    """

    config: Config
    multiply_adds: int
    seconds: float
    counters: Mapping[str, int]

    @property
    def cycles(self) -> int | None:
        """Cycles from the first instruction to the last byte written, all executions; ``None`` without a clock."""
        return self.counters.get(Counter.CYCLES.name.lower())

    @property
    def utilization(self) -> float | None:
        """Useful multiply-adds ÷ (S² × cycles); ``None`` without a clock."""
        return self.multiply_adds / (self.config.size**2 * self.cycles) if self.cycles else None

    @property
    def cycles_per_second(self) -> float | None:
        """Simulated cycles per second of wall clock; ``None`` without a clock."""
        return self.cycles / self.seconds if self.cycles else None

    def as_dict(self) -> dict[str, Any]:
        """The values that every measuring command reports as JSON."""
        return {
            "size": self.config.size,
            "cycles": self.cycles,
            "utilization": self.utilization,
            "cycles_per_second": self.cycles_per_second,
            "seconds": self.seconds,
            "multiply_adds": self.multiply_adds,
            "counters": dict(self.counters),
        }

    def as_rows(self) -> list[tuple[str, str]]:
        """The same values as labelled text; those that the device does not measure are omitted."""
        if self.cycles is None:
            return [("time", f"{self.seconds:.2f} s")]
        return [
            ("cycles", f"{self.cycles:,}"),
            ("array utilization", f"{self.utilization:.3f}"),
            ("simulated cycles per second", f"{self.cycles_per_second:,.0f}"),
            ("time", f"{self.seconds:.2f} s"),
        ]


def measured_run(
    program: Program, device: Device, inputs: NDArray[Any] | Mapping[str, NDArray[Any]], what: str
) -> tuple[dict[str, NDArray[Any]], Measurement]:
    """Load a program, run it and measure the run; a terminal shows ``what`` meanwhile.

    Returns
    -------
    The outputs by name, and the measurement.

    Raises
    ------
    openmxu.program.InputError, openmxu.device.DeviceError
        As :meth:`openmxu.program.Program.run` does.
    """
    device.clear_counters()
    with running(what) as progress:
        device.load(program)
        start = time.perf_counter()
        outputs = device.run(inputs, progress=progress)
        seconds = time.perf_counter() - start
    counters = {counter.name.lower(): int(value) for counter, value in device.counters.items()}
    multiply_adds = program.multiply_adds * program.elements(outputs) // program.batch
    return outputs, Measurement(program.config, multiply_adds, seconds, counters)
