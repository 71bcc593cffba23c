"""Devices by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.device import Device

__all__ = ["DEVICES", "UnknownDeviceError", "open_device"]


class UnknownDeviceError(OpenmxuError, ValueError):
    """There is no device of this name; the message lists the known ones."""


def _open_interpreter(config: Config, **options: Any) -> Device:
    from openmxu.sim.interpreter import Interpreter

    return Interpreter(config, **options)


def _open_model(config: Config, **options: Any) -> Device:
    from openmxu.sim.modelled import ModelledDevice

    return ModelledDevice(config, **options)


def _open_verilator(config: Config, **options: Any) -> Device:
    from openmxu.sim.verilated import VerilatedDevice

    return VerilatedDevice(config, **options)


def _open_axi(config: Config, **options: Any) -> Device:
    from openmxu.driver import MappedDevice
    from openmxu.sim.axi import SimulatedAxi

    return MappedDevice(SimulatedAxi(config, **options))


def _open_serial(config: Config, *, port: str, baud: int | None = None, **options: Any) -> Device:
    from openmxu.arch.serial import DEFAULT_BAUD
    from openmxu.driver import IdentificationError, MappedDevice
    from openmxu.driver.serial_transport import SerialTransport, open_port

    transport = SerialTransport(open_port(port, DEFAULT_BAUD if baud is None else baud), port, **options)
    try:
        device = MappedDevice(transport)
        if device.config != config:
            raise IdentificationError(f"the device at {port} is {device.config}, not {config}")
    except BaseException:
        transport.close()
        raise
    return device


def _open_uio(config: Config, **options: Any) -> Device:
    from openmxu.driver import IdentificationError, MappedDevice
    from openmxu.driver.uio_transport import UioTransport

    transport = UioTransport(**options)
    try:
        device = MappedDevice(transport)
        if device.config != config:
            raise IdentificationError(f"the device is {device.config}, not {config}")
    except BaseException:
        transport.close()
        raise
    return device


DEVICES: dict[str, Callable[..., Device]] = {
    "interpreter": _open_interpreter,
    "model": _open_model,
    "verilator": _open_verilator,
    "axi": _open_axi,
    "serial": _open_serial,
    "uio": _open_uio,
}
"""Functions that open each device. They import its module only then: using one device needs no packages of the
others."""


def open_device(name: str, config: Config, **options: Any) -> Device:
    """Open a device.

    Parameters
    ----------
    name
        ``interpreter``: numpy, functional, without time. ``model``: the same, with the cycles that the cycle model
        predicts. ``verilator``: the RTL, compiled and simulated. ``axi``: the same in its AXI shell, through the driver
        for registers. ``serial``: a board at the serial port that the option ``port`` names, with ``baud`` bits per
        second. ``uio``: a core on this machine's bus, under Linux; options of
        :class:`~openmxu.driver.uio_transport.UioTransport`.
    config
        Sizes of the core.
    options
        Passed on to the device's class.

    Raises
    ------
    UnknownDeviceError
        There is no such device.
    """
    try:
        opener = DEVICES[name]
    except KeyError:
        raise UnknownDeviceError(f"unknown device {name!r}; known: {', '.join(DEVICES)}") from None
    return opener(config, **options)
