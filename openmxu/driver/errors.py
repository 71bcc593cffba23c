"""Exceptions of drivers for memory-mapped devices."""

from __future__ import annotations

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction
from openmxu.arch.registers import BusPort
from openmxu.device import DeviceError, DeviceFault
from openmxu.disassembler import format_instruction

__all__ = ["DeviceBusError", "IdentificationError"]


class IdentificationError(DeviceError):
    """The hardware at these registers is not an openmxu device, or its version is unknown to this driver."""


class DeviceBusError(DeviceFault):
    """A memory answered an access of the device with an error. The contents of memories are undefined afterwards.

    ``index`` and ``instruction`` are those of the first instruction that accesses this address; if there is none, of
    the one that dispatch had reached.

    Attributes
    ----------
    port : BusPort
        The port that accessed it.
    address : int
        Address of the burst, as the device sees memory.
    """

    def __init__(self, index: int, instruction: Instruction, port: BusPort, address: int, response: int) -> None:
        self.port = port
        self.address = address
        reply = {2: "SLVERR", 3: "DECERR"}[response]
        detail = f"{port.name.lower()}: the memory answered a burst at {address:#x} with {reply}"
        super().__init__(FaultCode.BUS_ERROR, index, instruction, format_instruction(instruction), detail)
