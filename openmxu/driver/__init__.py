"""The driver of devices behind memory-mapped registers, over any transport."""

from openmxu.driver.errors import DeviceBusError, IdentificationError
from openmxu.driver.mapped_device import MappedDevice
from openmxu.driver.serial_link import NoAnswerError, PortError, RetryError
from openmxu.driver.serial_transport import SerialTransport, open_port
from openmxu.driver.transport import MemoryKind, Region, Transport
from openmxu.driver.uio_transport import UioError, UioTransport

__all__ = [
    "DeviceBusError",
    "IdentificationError",
    "MappedDevice",
    "MemoryKind",
    "NoAnswerError",
    "PortError",
    "Region",
    "RetryError",
    "SerialTransport",
    "Transport",
    "UioError",
    "UioTransport",
    "open_port",
]
