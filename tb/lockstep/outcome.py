"""The outcome of a program, in a form that can be compared between devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.events import Event
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction
from openmxu.device import Device, DeviceFault

__all__ = ["outcome"]


def outcome(
    device: Device, program: tuple[Instruction, ...], host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]
) -> tuple[list[Event], tuple[FaultCode, int, str] | None]:
    """Run ``program``; returns its events and its fault, if any, as code, index of the instruction, and message.

    The message is without the reason, of which the interpreter knows more than hardware does.
    """
    try:
        return device.execute(program, host_memory, weight_memory), None
    except DeviceFault as fault:
        return fault.events, (fault.code, fault.index, str(fault).partition(f"{fault.code.name}: ")[0])
