"""What a running device reports to the host: the event stream and the management registers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from openmxu.arch.faults import FaultCode

__all__ = [
    "COMMANDS",
    "CORE_STATUS",
    "COUNTERS",
    "IDENTIFICATION",
    "INTERFACE_VERSION",
    "Command",
    "CoreStatus",
    "Counter",
    "Event",
    "EventKind",
    "Management",
]

IDENTIFICATION = 0x00_01_55_58_4D_4E_50_4F
"""The value of the identification register: ``OPNMXU`` in ASCII, lowest byte first, above it the interface version."""

INTERFACE_VERSION = IDENTIFICATION >> 48
"""Version of the core's interface: instructions, events and management registers."""


class EventKind(IntEnum):
    """Kinds of events."""

    HALT = 0
    FAULT = 1
    HOST_SYNCHRONIZE = 2
    INTERRUPT = 3
    DEBUG_TAG = 4


@dataclass(frozen=True)
class Event:
    """One event: its kind, the index of the instruction since the program began, and its tag or fault code."""

    kind: EventKind
    index: int
    tag: int = 0
    fault: FaultCode = FaultCode.NONE


class Management(IntEnum):
    """Addresses of the 64-bit management registers."""

    IDENTIFICATION = 0x00
    STATUS = 0x01
    COMMAND = 0x02
    HOST_BASE = 0x04
    HOST_LIMIT = 0x05
    WEIGHT_BASE = 0x06
    WEIGHT_LIMIT = 0x07
    COUNTERS = 0x20


class CoreStatus(IntEnum):
    """Bit numbers of the STATUS register; the busy bits of the units follow above them."""

    RUNNING = 0
    FAULTED = 1
    WAITING = 2
    SCRUBBING = 3


CORE_STATUS: dict[CoreStatus, str] = {
    CoreStatus.RUNNING: "from the first instruction of a program to the end of its Halt",
    CoreStatus.FAULTED: "a fault has stopped the program: instructions are dropped until CLEAR_FAULT",
    CoreStatus.WAITING: "a Host_Synchronize waits for ACKNOWLEDGE",
    CoreStatus.SCRUBBING: "SCRUB has been written, and the memories are not clear yet",
}


class Command(IntEnum):
    """Bit numbers of the COMMAND register; writing 1 acts once."""

    CLEAR_COUNTERS = 0
    CLEAR_FAULT = 1
    ACKNOWLEDGE = 2
    SCRUB = 3


COMMANDS: dict[Command, str] = {
    Command.CLEAR_COUNTERS: "sets all counters to 0",
    Command.CLEAR_FAULT: "leaves the faulted state and forgets queued weights: the next instruction begins a program",
    Command.ACKNOWLEDGE: "lets a waiting Host_Synchronize finish",
    Command.SCRUB: "clears unified buffer, accumulators, parameter sets, table, configuration registers and counters, "
    "as soon as no program runs and no fault is pending; instructions wait until then. Zeros are written by the units "
    "themselves, in about `unified_buffer_rows` × S / `activation_lanes` cycles",
}


class Counter(IntEnum):
    """Counters, each a 64-bit management register at ``Management.COUNTERS + number``."""

    CYCLES = 0
    ARRAY_ACTIVE = 1
    WEIGHT_STALL = 2
    WEIGHT_SHIFT = 3
    NON_MATRIX = 4
    RAW_STALL = 5
    INPUT_STALL = 6
    HOST_READ_BYTES = 7
    HOST_WRITE_BYTES = 8
    WEIGHT_BYTES = 9
    HOST_READ_BUSY = 10
    HOST_WRITE_BUSY = 11
    WEIGHT_BUSY = 12
    MATRIX_BUSY = 13
    ACTIVATION_BUSY = 14
    RETIRED_HOST_READ = 15
    RETIRED_HOST_WRITE = 16
    RETIRED_READ_WEIGHTS = 17
    RETIRED_MATRIX = 18
    RETIRED_ACTIVATION = 19
    RETIRED_OTHER = 20


COUNTERS: dict[Counter, str] = {
    Counter.CYCLES: "cycles from the first instruction of a program to the end of its Halt",
    Counter.ARRAY_ACTIVE: "cycles in which a row entered the array; also the rows multiplied",
    Counter.WEIGHT_STALL: "cycles in which a MatrixMultiply waited for a tile that was not in the weight FIFO",
    Counter.WEIGHT_SHIFT: "cycles in which a MatrixMultiply waited for a tile to shift into the array",
    Counter.NON_MATRIX: "all other cycles: with array active, weight stall and weight shift they add up to all cycles",
    Counter.RAW_STALL: "non-matrix cycles in which a MatrixMultiply waited for the activation unit or the host write",
    Counter.INPUT_STALL: "non-matrix cycles in which a MatrixMultiply waited for rows from the host",
    Counter.HOST_READ_BYTES: "bytes of beats taken from the host read port",
    Counter.HOST_WRITE_BYTES: "bytes of beats given to the host write port",
    Counter.WEIGHT_BYTES: "bytes of beats taken from the weight port",
    Counter.HOST_READ_BUSY: "cycles in which the host reader had an instruction",
    Counter.HOST_WRITE_BUSY: "cycles in which the host writer had an instruction",
    Counter.WEIGHT_BUSY: "cycles in which the weight fetcher had a tile to fetch",
    Counter.MATRIX_BUSY: "cycles in which the matrix unit had an instruction",
    Counter.ACTIVATION_BUSY: "cycles in which the activation unit had an instruction",
    Counter.RETIRED_HOST_READ: "Read_Host_Memory instructions finished",
    Counter.RETIRED_HOST_WRITE: "Write_Host_Memory instructions finished",
    Counter.RETIRED_READ_WEIGHTS: "Read_Weights instructions queued",
    Counter.RETIRED_MATRIX: "MatrixMultiply instructions finished",
    Counter.RETIRED_ACTIVATION: "Activate instructions and parameter loads finished",
    Counter.RETIRED_OTHER: "other instructions executed",
}

STATUS_UNITS_OFFSET = 8
"""From this bit of STATUS on, one busy bit for each :class:`~openmxu.arch.isa.Unit`."""
