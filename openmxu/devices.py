"""Devices by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.device import Device
from openmxu.remote.address import SCHEME, is_address

if TYPE_CHECKING:
    from openmxu.driver import Transport

__all__ = ["DEVICES", "UnknownDeviceError", "open_device"]


SERIAL, UIO = "serial", "uio"
"""Devices that have a configuration of their own, which they report."""


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


def _open_serial(config: Config | None, *, port: str, baud: int | None = None, **options: Any) -> Device:
    from openmxu.arch.serial import BAUD_RATES
    from openmxu.driver.serial_transport import SerialTransport, open_port

    rates = BAUD_RATES if baud is None else (baud,)
    return _mapped(SerialTransport(open_port(port, rates[0]), port, rates=rates, **options), config, f"at {port} ")


def _open_uio(config: Config | None, **options: Any) -> Device:
    from openmxu.driver.uio_transport import UioTransport

    return _mapped(UioTransport(**options), config)


def _mapped(transport: Transport, config: Config | None, place: str = "") -> Device:
    """The device behind ``transport``, which is closed if that has another configuration than the one asked for."""
    from openmxu.driver import IdentificationError, MappedDevice

    try:
        device = MappedDevice(transport)
        if config is not None and device.config != config:
            raise IdentificationError(f"the device {place}is {device.config}, not {config}")
    except BaseException:
        transport.close()
        raise
    return device


def _open_remote(address: str, config: Config | None, **options: Any) -> Device:
    from openmxu.driver import IdentificationError
    from openmxu.remote.client import RemoteDevice

    device = RemoteDevice(address, **options)
    if config is not None and device.config != config:
        device.close()
        raise IdentificationError(f"the device at {address} is {device.config}, not {config}")
    return device


DEVICES: dict[str, Callable[..., Device]] = {
    "interpreter": _open_interpreter,
    "model": _open_model,
    "verilator": _open_verilator,
    "axi": _open_axi,
    SERIAL: _open_serial,
    UIO: _open_uio,
}
"""Functions that open each device. They import its module only then: using one device needs no packages of the
others."""


def open_device(name: str, config: Config | None = None, **options: Any) -> Device:
    """Open a device.

    Parameters
    ----------
    name
        ``interpreter``: numpy, functional, without time. ``model``: the same, with the cycles that the cycle model
        predicts. ``verilator``: the RTL, compiled and simulated. ``axi``: the same in its AXI shell, through the driver
        for registers. ``serial:PORT``, as in ``serial:/dev/ttyUSB1``: the board at a serial port, which the option
        ``port`` may name instead, at ``baud`` bits per second; without ``baud`` the usual rates are tried.
        ``uio``: a core on this machine's bus, under Linux; options of
        :class:`~openmxu.driver.uio_transport.UioTransport`. ``grpc://HOST:PORT``: the device that ``openmxu
        serve`` serves at this address.
    config
        Sizes of the core; by default those that a board or a server reports, or those of ``Config()`` in a simulation.
        A board or a server with others than these is an error.
    options
        Passed on to the device's class.

    Raises
    ------
    UnknownDeviceError
        There is no such device.
    """
    if is_address(name):
        return _open_remote(name, config, **options)
    kind, _, port = name.partition(":")
    if kind not in DEVICES or (port and kind != SERIAL):
        known = ", ".join((*DEVICES, f"{SCHEME}HOST:PORT"))
        raise UnknownDeviceError(f"unknown device {name!r}; known: {known}")
    if kind == SERIAL:
        return _open_serial(config, **(options | {"port": port} if port else options))
    if kind == UIO:
        return _open_uio(config, **options)
    return DEVICES[kind](Config() if config is None else config, **options)
