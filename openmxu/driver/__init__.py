"""The driver of devices behind memory-mapped registers, whatever carries the accesses."""

from openmxu.driver.mapped_device import DeviceBusError, IdentificationError, MappedDevice
from openmxu.driver.transport import MemoryKind, Region, Transport

__all__ = ["DeviceBusError", "IdentificationError", "MappedDevice", "MemoryKind", "Region", "Transport"]
