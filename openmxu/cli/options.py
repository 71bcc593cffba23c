"""Options that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from openmxu.arch.serial import BAUD_RATES
from openmxu.cli.errors import InputError
from openmxu.memory_timing import MOST_LATENCY, RATE_RANGE, read_rate
from openmxu.remote.address import Address
from openmxu.remote.errors import AddressError

__all__ = [
    "DEFAULT_EFFORT",
    "DEFAULT_LATENCY",
    "INTERPRETER",
    "VERILATOR",
    "AddressOption",
    "AnySizeOption",
    "BatchOption",
    "BaudOption",
    "DeviceAddress",
    "DeviceName",
    "DeviceOption",
    "EffortOption",
    "HostMemoryOption",
    "HostMemoryOutputOption",
    "HostRateOption",
    "JsonOption",
    "LatencyOption",
    "OutputOption",
    "PortOption",
    "ShapeOption",
    "WeightRateOption",
    "WeightsOption",
    "read_address",
    "read_shapes",
]


DEFAULT_LATENCY = 4
"""Cycles from a request to the first beat of its data."""

DEFAULT_EFFORT = 1
"""Length of the search for a fast schedule, as a multiple of the usual one."""


class DeviceName(StrEnum):
    """Devices that a command can open."""

    INTERPRETER = "interpreter"
    MODEL = "model"
    VERILATOR = "verilator"
    AXI = "axi"
    SERIAL = "serial"
    GRPC = "grpc"


@dataclass(frozen=True)
class DeviceAddress:
    """A device by its name, and where it is: ``serial:/dev/ttyUSB1`` is a board at a serial port,
    ``grpc://127.0.0.1:8790`` what ``openmxu serve`` serves."""

    name: DeviceName
    port: str | None = None

    def __str__(self) -> str:
        return self.name.value if self.port is None else f"{self.name.value}:{self.port}"

    @property
    def is_board(self) -> bool:
        """Whether it has a configuration of its own, which it reports."""
        return self.name in (DeviceName.SERIAL, DeviceName.GRPC)


INTERPRETER = DeviceAddress(DeviceName.INTERPRETER)
VERILATOR = DeviceAddress(DeviceName.VERILATOR)


def read_address(text: str | DeviceAddress) -> DeviceAddress:
    """The device that ``--device`` says.

    Raises
    ------
    typer.BadParameter
        There is no such device, it has no port, or its address has another form.
    """
    if isinstance(text, DeviceAddress):  # a default
        return text
    if text.startswith(DeviceName.GRPC):
        try:
            Address.parse(text)
        except AddressError as error:
            raise typer.BadParameter(f"{error}.") from None
        return DeviceAddress(DeviceName.GRPC, text.partition(":")[2])
    name, has_port, port = text.partition(":")
    if name not in list(DeviceName) or (has_port and (name != DeviceName.SERIAL or not port)):
        known = ", ".join(f"'{device.value}'" for device in DeviceName if device is not DeviceName.GRPC)
        raise typer.BadParameter(f"'{text}' is not one of {known}, 'serial:PORT', 'grpc://HOST:PORT'.")
    return DeviceAddress(DeviceName(name), port or None)


_SIMULATIONS = (
    "interpreter: functional, without a clock. model: the same with predicted cycles. verilator: the RTL, "
    "cycle by cycle. axi: the RTL in its AXI shell, through the driver for registers."
)
AddressOption = Annotated[
    DeviceAddress,
    typer.Option(
        "--device",
        metavar="NAME",
        parser=read_address,
        help=f"{_SIMULATIONS} serial:PORT: the board at a serial port, grpc://HOST:PORT: what openmxu serve serves "
        "there; their configuration is used.",
    ),
]


def _allow_any_size(is_given: bool) -> None:
    if is_given:
        from openmxu.sim.verilator.needs import ANY_SIZE_VARIABLE

        os.environ[ANY_SIZE_VARIABLE] = "1"


AnySizeOption = Annotated[
    bool,
    typer.Option(
        "--any-size",
        callback=_allow_any_size,
        help="Begin even if the machine seems to have too little memory for an array of this size.",
    ),
]
DeviceOption = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        metavar="NAME",
        help=_SIMULATIONS,
    ),
]
PortOption = Annotated[
    str | None,
    typer.Option("--port", metavar="PATH", help="Another way to say where the board of --device serial is."),
]
BaudOption = Annotated[
    int | None,
    typer.Option(
        "--baud",
        metavar="RATE",
        min=1,
        help=f"Bits per second of a board. Default: the first of {', '.join(map(str, BAUD_RATES))} that it answers.",
    ),
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch",
        metavar="N",
        min=1,
        help="Batch elements that one execution computes. Default: the model's, or 1 image or about 64 rows.",
    ),
]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=N",
        help="Fix a dimension that the model leaves open, as height=48, or all those of an input, as x=0,3,48,320, "
        "where 0 leaves one open. May be repeated.",
    ),
]
EffortOption = Annotated[
    int | None,
    typer.Option(
        "--effort",
        metavar="N",
        min=0,
        help=f"Search N times as long as usual for a fast schedule; with 0 not at all. Default: {DEFAULT_EFFORT}.",
    ),
]
LatencyOption = Annotated[
    int | None,
    typer.Option(
        "--memory-latency",
        metavar="CYCLES",
        min=1,
        max=MOST_LATENCY,
        help=f"From request to data. Default: {DEFAULT_LATENCY}.",
    ),
]


def _rate(text: str) -> Fraction:
    rate = read_rate(text)
    if rate is None:
        raise typer.BadParameter(f"{text!r} is not a number of bytes per cycle {RATE_RANGE}.")
    return rate


HostRateOption = Annotated[
    Fraction | None,
    typer.Option(
        "--host-rate",
        metavar="BYTES",
        parser=_rate,
        help="Bytes per cycle of host memory in each direction, as 20 or 340/7. Default: a beat in every cycle.",
    ),
]
WeightRateOption = Annotated[
    Fraction | None,
    typer.Option(
        "--weight-rate",
        metavar="BYTES",
        parser=_rate,
        help="Bytes per cycle of weight memory. Default: a beat in every cycle.",
    ),
]
HostMemoryOption = Annotated[
    Path | None,
    typer.Option(
        "--host-memory", metavar="FILE", help="Host memory of bare instructions: an array as .npy, or plain bytes."
    ),
]
HostMemoryOutputOption = Annotated[
    Path | None,
    typer.Option(
        "--host-memory-output",
        metavar="FILE",
        help="Write the host memory that they leave: as .npy of the same type and shape, or as plain bytes.",
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option("--weights", metavar="FILE", help="Weight memory of bare instructions, in the same form."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")]


def read_shapes(given: list[str] | None) -> dict[str, int | list[int]]:
    """What ``--shape`` says: a number for a dimension, a list for an input.

    Raises
    ------
    InputError
        It is not in the form NAME=N or NAME=N,N.
    """
    shapes: dict[str, int | list[int]] = {}
    for item in given or ():
        name, _, text = item.rpartition("=")
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not name or not numbers:
            raise InputError(f"--shape must be NAME=N or NAME=N,N, as in height=48 or x=0,3,48,320, not {item!r}")
        shapes[name] = numbers if "," in text else numbers[0]
    return shapes
