"""Fault codes: why a device stopped a program.

The core detects the first ones in instructions, and checks for them in the order of their codes. The last ones are
raised by the shell between core and memories.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["CORE_FAULTS", "FAULT_DESCRIPTIONS", "FaultCode"]


class FaultCode(IntEnum):
    """The reason why a program was stopped; an instruction with several defects reports the lowest code."""

    NONE = 0
    UNKNOWN_OPCODE = 1
    RESERVED_BITS = 2
    UNIMPLEMENTED = 3
    ILLEGAL_VALUE = 4
    UNIFIED_BUFFER_RANGE = 5
    ACCUMULATOR_RANGE = 6
    PARAMETER_RANGE = 7
    HOST_WINDOW = 8
    WEIGHT_WINDOW = 9
    NO_TILE = 10
    WEIGHT_QUEUE_FULL = 11
    UNIFIED_BUFFER_OVERLAP = 12
    BUS_ERROR = 13
    TIME_OUT = 14


CORE_FAULTS: tuple[FaultCode, ...] = tuple(code for code in FaultCode if FaultCode.NONE < code < FaultCode.BUS_ERROR)
"""The faults that the core detects in instructions."""


FAULT_DESCRIPTIONS: dict[FaultCode, str] = {
    FaultCode.UNKNOWN_OPCODE: "the opcode is not one of the instruction set",
    FaultCode.RESERVED_BITS: "a reserved bit is set",
    FaultCode.UNIMPLEMENTED: "this hardware does not execute the instruction or mode",
    FaultCode.ILLEGAL_VALUE: "a field has a value outside its range: a count of zero, a misaligned address, "
    "an unknown register, a zero point that does not fit its format, a plane or window of no rows, or flags that "
    "exclude each other",
    FaultCode.UNIFIED_BUFFER_RANGE: "the rows reach beyond the end of the unified buffer",
    FaultCode.ACCUMULATOR_RANGE: "the rows reach beyond the end of the accumulators",
    FaultCode.PARAMETER_RANGE: "the parameter sets reach beyond those of the activation unit",
    FaultCode.HOST_WINDOW: "the bytes lie outside the host memory window that the driver set",
    FaultCode.WEIGHT_WINDOW: "the bytes lie outside the weight memory window that the driver set",
    FaultCode.NO_TILE: "no weight tile is queued (next_tile) or in use (reuse)",
    FaultCode.WEIGHT_QUEUE_FULL: "more Read_Weights or Load_Weights are outstanding than their queue holds, "
    "or as many tiles before a Load_Weights as the weight FIFO holds; take tiles with MatrixMultiply first",
    FaultCode.UNIFIED_BUFFER_OVERLAP: "Activate would write unified buffer rows that it also reads",
    FaultCode.BUS_ERROR: "a memory answered an access with an error",
    FaultCode.TIME_OUT: "nothing was finished or transferred for as long as TIME_LIMIT allows",
}
