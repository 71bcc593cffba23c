"""The serial ports of this computer, and the devices that answer at them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.serial import BAUD_RATES
from openmxu.device import DeviceError
from openmxu.driver.mapped_device import MappedDevice
from openmxu.driver.serial_link import PortError
from openmxu.driver.serial_transport import SerialTransport, open_port

__all__ = ["Answer", "SerialPort", "ask_port", "ask_ports", "serial_ports"]

_TIMEOUT = 0.1
"""Seconds until a frame without answer is sent again. A late answer still counts."""

_ROUNDS = 2
"""Frames that are sent at each rate before a port counts as silent."""

_PATIENCE = 1.0
"""Seconds within which a register is answered."""

_DEADLINE = 10.0
"""Seconds after which a port is given up that the operating system neither opens nor refuses."""


@dataclass(frozen=True)
class SerialPort:
    """A serial port.

    Attributes
    ----------
    path
        Its name for :func:`~openmxu.driver.serial_transport.open_port`.
    description
        The name of the hardware, as far as it is known.
    is_usb
        Whether it is at the end of a USB cable, as those of boards are.
    """

    path: str
    description: str = ""
    is_usb: bool = True


@dataclass(frozen=True)
class Answer:
    """The outcome of asking a port.

    Attributes
    ----------
    port
    config
        Sizes of the core that answers; ``None`` if nothing does.
    clock
        Frequency of its clock in Hz, measured.
    baud
        Bits per second at which it answers.
    problem
        Why there is no answer; empty if there is one.
    """

    port: SerialPort
    config: Config | None = None
    clock: float | None = None
    baud: int | None = None
    problem: str = ""


def serial_ports() -> list[SerialPort]:
    """The serial ports that the operating system lists, in the order of their names.

    Raises
    ------
    PortError
        pyserial is not installed.
    """
    try:
        from serial.tools import list_ports
    except ImportError:
        raise PortError("a serial port needs pyserial: install it with: pip install 'openmxu[serial]'") from None
    found = [
        SerialPort(item.device, "" if item.description in (None, "n/a") else item.description, item.vid is not None)
        for item in list_ports.comports()
    ]
    return sorted(found, key=lambda port: port.path)


def ask_port(port: SerialPort, rates: Sequence[int] = BAUD_RATES) -> Answer:
    """Look for a device at a port, and measure its clock: less than a second per rate that is tried."""
    attempts = _ROUNDS * len(rates)
    try:
        opened = open_port(port.path, rates[0])
        transport = SerialTransport(
            opened, port.path, timeout=_TIMEOUT, attempts=attempts, rates=rates, patience=_PATIENCE
        )
        with MappedDevice(transport) as device:
            return Answer(port, device.config, device.measure_clock(), transport.baud)
    except DeviceError as error:
        return Answer(port, problem=str(error))
    except Exception as error:  # drivers of ports fail in more ways than pyserial reports as OSError
        return Answer(port, problem=f"the port fails: {type(error).__name__}: {error}")


def ask_ports(
    ports: Iterable[SerialPort], rates: Sequence[int] = BAUD_RATES, *, deadline: float = _DEADLINE
) -> list[Answer]:
    """Ask several ports at once.

    Returns
    -------
    The answers in the order of the ports, after ``deadline`` seconds at the latest.
    """
    listed = list(ports)
    answers: dict[int, Answer] = {}

    def ask(number: int, port: SerialPort) -> None:
        answers[number] = ask_port(port, rates)

    # Daemons: a port that hangs in the operating system does not keep the process from ending.
    threads = [threading.Thread(target=ask, args=item, daemon=True) for item in enumerate(listed)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"the operating system does not open it within {deadline:g} s"
    return [answers.get(number, Answer(port, problem=late)) for number, port in enumerate(listed)]
