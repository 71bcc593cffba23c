"""``openmxu devices``: the serial ports of this computer, and what answers at each."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from openmxu.arch import PRESETS, Config
from openmxu.arch.serial import BAUD_RATES
from openmxu.cli.options import JsonOption
from openmxu.cli.report import print_json, table_console, working
from openmxu.driver.serial_ports import Answer, SerialPort, ask_ports, serial_ports

__all__ = ["devices_command"]

_NOT_ASKED = "not asked, as it is no USB port: --port asks it"


def devices_command(
    port: Annotated[
        list[str] | None,
        typer.Option("--port", metavar="PATH", help="Ask this port only, which need not be listed. May be repeated."),
    ] = None,
    baud: Annotated[
        list[int] | None,
        typer.Option(
            "--baud",
            metavar="RATE",
            min=1,
            help=f"Try this rate. May be repeated. Default: {', '.join(map(str, BAUD_RATES))}.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the serial ports, and what answers at each: configuration, measured clock, and baud rate.

    USB ports are asked, as frames of the serial protocol; others only if --port names them. A port that another program
    uses is not asked. The exit status is 1 if nothing answers at a port that --port names.
    """
    listed = [SerialPort(path) for path in dict.fromkeys(port)] if port else serial_ports()
    with working("Asking the ports"):
        answers = ask_ports([item for item in listed if item.is_usb], baud or BAUD_RATES)
    asked = {answer.port: answer for answer in answers}
    found = [asked.get(item) or Answer(item, problem=_NOT_ASKED) for item in listed]
    if json:
        print_json({"ports": [_facts(answer) for answer in found]})
    elif not found:
        typer.echo("no serial port found: is the board plugged in?")
    else:
        _print_table(found)
    if port and any(answer.config is None for answer in found):
        raise typer.Exit(1)


def _facts(answer: Answer) -> dict[str, Any]:
    config = answer.config
    return {
        "port": answer.port.path,
        "description": answer.port.description,
        "answers": config is not None,
        "preset": None if config is None else _preset(config),
        "configuration": None if config is None else config.as_dict(),
        "clock": answer.clock,
        "baud": answer.baud,
        "problem": answer.problem or None,
    }


def _print_table(found: list[Answer]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    columns = ("port", "hardware", "array", "profile", "configuration", "clock", "baud")
    for name in columns:
        table.add_column(
            name, no_wrap=name != "configuration", justify="right" if name in ("clock", "baud") else "left"
        )
    for answer in found:
        names, config = (answer.port.path, answer.port.description), answer.config
        if config is None:
            table.add_row(*names, "", "", answer.problem.removeprefix(f"{answer.port.path}: "))
            continue
        sizes = f"{config.size} × {config.size}"
        rate = f"{answer.clock / 1e6:.3g} MHz" if answer.clock is not None else ""
        table.add_row(*names, sizes, config.profile, _described(config), rate, f"{answer.baud:,}")
    table_console().print(table)


def _preset(config: Config) -> str | None:
    """The name of the preset that a configuration is."""
    return next((name for name in PRESETS if Config.preset(name) == config), None)


def _described(config: Config) -> str:
    """The preset, or the sizes of the memories."""
    preset = _preset(config)
    sizes = (
        f"{config.unified_buffer_rows:,} rows, {config.accumulator_rows:,} accumulators, "
        f"{config.weight_fifo_tiles} tiles"
    )
    return sizes if preset is None else f"{preset}: {sizes}"
