"""The interface of every device, and the exceptions that devices raise."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Counter, Event
from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import Instruction

__all__ = ["Device", "DeviceError", "DeviceFault", "DeviceHang", "Snapshot"]


class DeviceError(Exception):
    """A device could not run a program."""


class DeviceFault(DeviceError):
    """A program broke a rule of the machine and was stopped.

    Attributes
    ----------
    code : FaultCode
    index : int
        Index of the instruction in its program.
    instruction : Instruction
    events : list of Event
        The events of the programs that were run together, up to the fault.
    """

    def __init__(
        self, code: FaultCode, index: int, instruction: Instruction, text: str, detail: str | None = None
    ) -> None:
        self.code = code
        self.index = index
        self.instruction = instruction
        self.events: list[Event] = []
        super().__init__(f"instruction {index} ({text}): {code.name}: {detail or FAULT_DESCRIPTIONS[code]}")


class DeviceHang(DeviceError):
    """A device made no progress; the message names the waiting unit."""


@dataclass(frozen=True)
class Snapshot:
    """The contents of a device's memories that a program can see.

    Attributes
    ----------
    unified_buffer : uint8 array, (unified_buffer_rows, S)
    accumulators : int32 array, (accumulator_rows, S)
    """

    unified_buffer: NDArray[np.uint8]
    accumulators: NDArray[np.int32]


class Device(abc.ABC):
    """A device that executes programs: interpreter, simulated RTL or board. A context manager.

    Memories and configuration registers keep their contents from one program to the next.
    """

    config: Config

    @abc.abstractmethod
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program`` until it has ended.

        Parameters
        ----------
        program
            Instructions; the last one is Halt. Several programs, each ended by Halt, run back to back.
        host_memory, weight_memory
            uint8 arrays, C-contiguous; byte i is address i, and the windows end with the arrays. The program writes
            to ``host_memory`` in place. Host_Synchronize is acknowledged at once.

        Returns
        -------
        The events in their order, each Halt included.

        Raises
        ------
        DeviceFault
            The program broke a rule; everything before the faulting instruction has been executed. The device is
            ready for the next program.
        DeviceHang
            The device made no progress.
        ValueError
            The program does not end with Halt, or a memory is no contiguous uint8 vector.
        """

    @property
    @abc.abstractmethod
    def counters(self) -> Mapping[Counter, int]:
        """The counters of the configuration's profile since they were last cleared; empty on a device that has no
        clock."""

    @abc.abstractmethod
    def clear_counters(self) -> None:
        """Set all counters to 0."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget configuration registers and queued weights, as after power-on; memories keep their contents."""

    @abc.abstractmethod
    def scrub(self) -> None:
        """Clear all memories and everything that :meth:`reset` clears, between one user's programs and the next
        one's."""

    def close(self) -> None:
        """Release the device's resources; it cannot be used afterwards."""

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
