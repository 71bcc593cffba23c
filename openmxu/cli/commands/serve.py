"""``openmxu serve``: a device at an address, for one client after the other."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Annotated

import typer

from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.files import read_text
from openmxu.cli.options import (
    INTERPRETER,
    AddressOption,
    BaudOption,
    DeviceName,
    HostRateOption,
    LatencyOption,
    PortOption,
    WeightRateOption,
)
from openmxu.cli.programs import open_device
from openmxu.device import Device

__all__ = ["serve_command"]

_PANEL = "Protection"
_FILE = "FILE"
_IDLE_SECONDS = 600.0


@configured
def serve_command(
    device: AddressOption = INTERPRETER,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Address of one of this machine's networks; with port 0 a free one."
        ),
    ] = "127.0.0.1:8790",
    choice: ConfigChoice = DEFAULTS,
    port: PortOption = None,
    baud: BaudOption = None,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    idle: Annotated[
        float,
        typer.Option(
            "--idle",
            metavar="SECONDS",
            min=0.1,
            help="A client that does nothing for so long loses the device, if others wait.",
        ),
    ] = _IDLE_SECONDS,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate", metavar=_FILE, help="The server's certificate (PEM): encrypts.", rich_help_panel=_PANEL
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar=_FILE, help="Its private key (PEM).", rich_help_panel=_PANEL)
    ] = None,
    client_ca: Annotated[
        Path | None,
        typer.Option(
            "--client-ca",
            metavar=_FILE,
            help="Only clients whose certificate this one (PEM) has signed.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar=_FILE,
            help="Only clients that know the token in this file. Without it, OPENMXU_REMOTE_TOKEN counts.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            help="Listen at addresses that other machines reach, without encryption or token.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
) -> None:
    """Serve a device at an address until Ctrl-C: with --device grpc://HOST:PORT, other commands use it from elsewhere.

    One client has the device, others wait for it in their order. The device is cleared between two clients.
    """
    import openmxu.remote.server as remote
    from openmxu.remote.address import Address
    from openmxu.remote.errors import AddressError, SettingError
    from openmxu.remote.settings import VARIABLES, Protection

    opening = {"port": port, "baud": baud, "memory_latency": memory_latency}
    rates = {"host_rate": host_rate, "weight_rate": weight_rate}
    if device.name is DeviceName.GRPC:
        raise InputError(f"--device {device} is served already")

    def open_it() -> Device:
        if not device.is_board:
            return open_device(device, choice.config(), **opening, **rates)
        board = open_device(device, None, **opening, **rates)
        try:
            choice.check_board(board.config, str(device.port or port))
        except BaseException:
            board.close()
            raise
        return board

    try:
        token = os.environ.get(VARIABLES["token"]) or None
        if token_file is not None:
            token = read_text(token_file).strip()
        protection = Protection(
            token=token, certificate=certificate, key=key, client_authority=client_ca, insecure=insecure
        )
        server = remote.Server(str(device), open_it, Address.parse(listen, scheme=""), protection, idle_seconds=idle)
    except (AddressError, SettingError) as error:
        raise InputError(str(error)) from None
    try:
        typer.echo(f"{device} of size {server.config.size} at {server.address}; Ctrl-C ends")
        threading.Event().wait()
    except KeyboardInterrupt:
        raise typer.Exit from None
    finally:
        if server.is_busy:
            typer.echo("openmxu: note: the device ends what it is doing; Ctrl-C again does not wait for it", err=True)
        server.close()
