"""The ``openmxu`` command and its subcommands; every failure becomes one line of text and an exit status."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import openmxu
from openmxu.cli.boards.devices import devices_command
from openmxu.cli.boards.simulate import simulate_board_command
from openmxu.cli.commands.array import array_command
from openmxu.cli.commands.assembly import assemble_command, disassemble_command
from openmxu.cli.commands.bench import conv_command, gemm_command, network_command
from openmxu.cli.commands.compare import compare_command
from openmxu.cli.commands.demo import demo_command
from openmxu.cli.commands.doctor import doctor_command
from openmxu.cli.commands.evaluate import evaluate_command
from openmxu.cli.commands.models import compile_command, quantize_command, run_command
from openmxu.cli.commands.profile import profile_command
from openmxu.cli.commands.serve import serve_command
from openmxu.cli.commands.sweep import sweep_command
from openmxu.cli.commands.trace import trace_command
from openmxu.cli.commands.verilog import verilog_command
from openmxu.cli.errors import one_line
from openmxu.device import DeviceError

__all__ = ["application", "main", "run"]

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
TRACEBACK_VARIABLE = "OPENMXU_TRACEBACK"

_CONTEXT = {"help_option_names": ["--help", "-h"]}

application = typer.Typer(
    name="openmxu",
    help="An open matrix accelerator: compile quantized ONNX models, run them on the simulated RTL, get its Verilog.",
    epilog="Exit status: 0 well, 1 a run failed or results differ, 2 wrong usage or input, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
_benches = typer.Typer(help="Measure cycles and array utilization.", context_settings=_CONTEXT)
application.add_typer(_benches, name="bench")

_COMMANDS = (
    (application, "demo", demo_command, "openmxu demo", "openmxu demo --size 16 --json"),
    (
        application,
        "run",
        run_command,
        "openmxu run model.onnx --input x.npy --output y.npy",
        "openmxu run model.onnx --input x.npy --output y.npy --device verilator --size 16",
        "openmxu run model.onnx --input x.npy --output y.npy --device serial:/dev/ttyUSB1",
        "openmxu run program.s --host-memory in.npy --weights w.npy --host-memory-output out.npy --size 4",
    ),
    (
        application,
        "compile",
        compile_command,
        "openmxu compile model.onnx --size 16 --batch 256 -o model.mxu",
        "openmxu compile model.onnx --size 16 --report",
        "openmxu compile model.onnx --device serial:/dev/ttyUSB1 -o model.mxu",
        "openmxu run model.mxu --input x.npy --output y.npy",
    ),
    (
        application,
        "quantize",
        quantize_command,
        "openmxu quantize float.onnx --calibration x.npy -o model.onnx",
        "openmxu quantize float.onnx --calibration x.npy -o model.onnx --activations int8 --json",
    ),
    (
        application,
        "compare",
        compare_command,
        "openmxu compare model.onnx --input x.npy --float float.onnx --labels labels.npy",
        "openmxu compare model.onnx --input x.npy --device verilator --json",
    ),
    (
        application,
        "profile",
        profile_command,
        "openmxu profile model.onnx --input x.npy -o profile",
        "openmxu profile model.onnx --input x.npy -o profile --device verilator --size 16",
    ),
    (
        application,
        "trace",
        trace_command,
        "openmxu trace model.onnx --input x.npy -o trace.json --size 8",
        "openmxu trace model.onnx -o trace.json --device model",
    ),
    (
        application,
        "evaluate",
        evaluate_command,
        "openmxu evaluate model.onnx --data x.npy --labels y.npy --workers 4",
        "openmxu evaluate model.onnx --data x.npy --labels y.npy --size 16 --device verilator --json",
    ),
    (
        _benches,
        "gemm",
        gemm_command,
        "openmxu bench gemm 64 64 64 --size 8",
        "openmxu bench gemm 512 512 512 --size 16 --device verilator --json",
    ),
    (
        _benches,
        "conv",
        conv_command,
        "openmxu bench conv --size 16 --json",
        "openmxu bench conv --inputs 3 --outputs 32 --kernel 5 --stride 2 --pool 1 --device interpreter",
    ),
    (
        _benches,
        "network",
        network_command,
        "openmxu bench network mnist --size 8",
        "openmxu bench network resnet20 --size 16 --device verilator --json",
    ),
    (
        application,
        "array",
        array_command,
        "openmxu array -o array.html",
        "openmxu array 9 16 8 --size 8 -o array.html",
        "openmxu array -o array.svg",
    ),
    (
        application,
        "sweep",
        sweep_command,
        "openmxu sweep 64x512x64 mnist --set size=8,16 --set memory_latency=4,100 -o points.csv --plot points.html",
        "openmxu sweep --file sweep.toml -o points.csv --scheduler tcp://host:8786",
    ),
    (application, "assemble", assemble_command, "openmxu assemble program.s --size 8 -o program.bin"),
    (
        application,
        "disassemble",
        disassemble_command,
        "openmxu disassemble program.bin",
        "openmxu disassemble model.mxu -o model.s",
        "openmxu disassemble model.mxu --numbers",
    ),
    (
        application,
        "verilog",
        verilog_command,
        "openmxu verilog --size 8 -o openmxu_core.v",
        "openmxu verilog --shell axi --size 16 -o openmxu_axi",
    ),
    (
        application,
        "devices",
        devices_command,
        "openmxu devices",
        "openmxu devices --port /dev/ttyUSB1 --json",
    ),
    (
        application,
        "simulate-board",
        simulate_board_command,
        "openmxu simulate-board tang_nano_9k --link board",
        "openmxu run model.onnx --input x.npy --output y.npy --device serial:board",
    ),
    (
        application,
        "serve",
        serve_command,
        "openmxu serve --device verilator --size 16",
        "openmxu serve --device serial:/dev/ttyUSB1 --listen 0.0.0.0:8790 --certificate server.pem --key server.key "
        "--token-file token",
        "openmxu run model.onnx --input x.npy --output y.npy --device grpc://127.0.0.1:8790",
    ),
    (application, "doctor", doctor_command, "openmxu doctor"),
)
for _group, _name, _function, *_lines in _COMMANDS:
    _group.command(_name, epilog="\n\n".join(("Examples:", *_lines)))(_function)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"openmxu {openmxu.__version__}")
        raise typer.Exit


@application.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose", "-v", count=True, help="Log stages, builds and faults on stderr; -vv logs more.", metavar=""
        ),
    ] = 0,
) -> None:
    if verbose:
        _log_on_stderr(logging.INFO if verbose == 1 else logging.DEBUG)


def _log_on_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("openmxu")
    logger.addHandler(handler)
    logger.setLevel(level)


def main() -> None:
    """The entry point of the ``openmxu`` command."""
    # A terminated run cleans up like an interrupted one, so that no temporary file remains.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    # Closed streams, and characters that a stream cannot encode or that are invalid in file names, must not cause
    # exceptions.
    nothing = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stdout, sys.stderr = sys.stdout or nothing, sys.stderr or nothing
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Execute one command line and return its exit status; errors have been printed on stderr."""
    try:
        status = application(list(arguments) or ["--help"], prog_name="openmxu", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _fail(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has exited. Python flushes stdout again on exit, so redirect it to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (DeviceError, OSError) as error:
        return _fail(str(error), 1)
    except MemoryError:
        return _fail("not enough memory", 1)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        what = f"{type(error).__name__}: {error}"
        return _fail(f"{what} (a defect of openmxu; {TRACEBACK_VARIABLE}=1 shows where)", 1)
    return status or 0


def _fail(message: str, status: int) -> int:
    typer.echo(f"openmxu: error: {one_line(message)}", err=True)
    return status
