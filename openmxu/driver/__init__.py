"""The driver of devices behind memory-mapped registers, whatever carries the accesses."""

from openmxu.driver.errors import DeviceBusError, IdentificationError
from openmxu.driver.mapped_device import MappedDevice
from openmxu.driver.transport import MemoryKind, Region, Transport

__all__ = ["DeviceBusError", "IdentificationError", "MappedDevice", "MemoryKind", "Region", "Transport"]
