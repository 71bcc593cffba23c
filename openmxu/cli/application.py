"""The ``openmxu`` command: its subcommands, and how every failure becomes one line and an exit status."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from openmxu.cli.assembly import assemble_command, disassemble_command
from openmxu.cli.doctor import doctor_command
from openmxu.cli.errors import one_line

__all__ = ["application", "main", "run"]

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
TRACEBACK_VARIABLE = "OPENMXU_TRACEBACK"

application = typer.Typer(
    name="openmxu",
    help="An open matrix accelerator: compile quantized ONNX models, run them on the simulated RTL, get its Verilog.",
    epilog="Exit status: 0 well, 1 a run failed or results differ, 2 wrong usage or input, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _examples(*lines: str) -> str:
    """An epilogue with one command a line."""
    return "\n\n".join(("Examples:", *lines))


application.command("assemble", epilog=_examples("openmxu assemble program.s -o program.bin --size 8"))(
    assemble_command
)
application.command("doctor", epilog=_examples("openmxu doctor"))(doctor_command)
application.command("disassemble", epilog=_examples("openmxu disassemble program.bin"))(disassemble_command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"openmxu {importlib.metadata.version('openmxu')}")
        raise typer.Exit


@application.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point of the ``openmxu`` command."""
    # A terminated run cleans up as an interrupted one does: no temporary file stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Execute one command line and return its exit status; errors are on stderr by then."""
    try:
        status = application(list(arguments) or ["--help"], prog_name="openmxu", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _fail(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has left. Python flushes stdout once more at its exit: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(str(error), 1)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        what = f"{type(error).__name__}: {error}"
        return _fail(f"{what} (a defect of openmxu; {TRACEBACK_VARIABLE}=1 shows where)", 1)
    return status or 0


def _fail(message: str, status: int) -> int:
    typer.echo(f"openmxu: error: {one_line(message)}", err=True)
    return status
