"""What drivers of memory-mapped devices raise."""

from __future__ import annotations

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction
from openmxu.arch.registers import BusPort
from openmxu.device import DeviceError, DeviceFault
from openmxu.disassembler import format_instruction

__all__ = ["DeviceBusError", "IdentificationError"]


class IdentificationError(DeviceError):
    """What answers is no device of this kind, or of a version that this driver does not know."""


class DeviceBusError(DeviceFault):
    """A memory answered an access of the device with an error. Memories hold anything after that.

    ``index`` and ``instruction`` are those of the first instruction that accesses this address; where none does, of
    the one that dispatch had reached.

    Attributes
    ----------
    port : BusPort
        Who accessed it.
    address : int
        Of the burst, as the device sees memory.
    """

    def __init__(self, index: int, instruction: Instruction, port: BusPort, address: int, response: int) -> None:
        self.port = port
        self.address = address
        reply = {2: "SLVERR", 3: "DECERR"}[response]
        detail = f"{port.name.lower()}: the memory answered a burst at {address:#x} with {reply}"
        super().__init__(FaultCode.BUS_ERROR, index, instruction, format_instruction(instruction), detail)
