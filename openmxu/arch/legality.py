"""Which programs are legal: one sequential check that assembler, interpreter and random programs share.

A program has no branches, so a fault depends only on the configuration, the driver's memory windows and the
instructions before it. The RTL's dispatcher makes the same checks in the same order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, OutputFormat, Register, register_format

__all__ = ["PARAMETER_ROWS", "LegalityChecker", "Window", "host_extent"]

PARAMETER_ROWS = 8
"""Unified buffer rows of one parameter set."""


@dataclass(frozen=True)
class Window:
    """Byte addresses from ``base`` up to, but not including, ``limit``."""

    base: int
    limit: int

    def contains(self, address: int, length: int) -> bool:
        """Whether all of ``length`` bytes at ``address`` lie inside."""
        return self.base <= address and address + length <= self.limit


def host_extent(rows: int, size: int, stride: int) -> int:
    """Bytes from the first byte of the first row to the last byte of the last row."""
    return (rows - 1) * stride + size


@dataclass
class LegalityChecker:
    """Follows a program instruction by instruction and finds the first fault.

    ``host`` and ``weights`` are the driver's windows; ``None`` leaves that memory unchecked, as an assembler must.
    """

    config: Config
    host: Window | None = None
    weights: Window | None = None
    registers: dict[Register, int] = field(default_factory=lambda: dict.fromkeys(Register, 0))
    outstanding: deque[int] = field(default_factory=deque)
    tile_in_array: bool = False

    def check(self, instruction: Instruction) -> FaultCode:
        """The fault that the next instruction raises; ``NONE`` takes it as executed and updates the state."""
        fault = self._fault(instruction)
        if fault is FaultCode.NONE:
            self._advance(instruction)
        return fault

    def begin_program(self) -> None:
        """Forget queued weights, as Halt and clearing a fault do."""
        self.outstanding.clear()
        self.tile_in_array = False

    def register(self, register: Register) -> dict[str, int]:
        """The fields of a configuration register as the program has set it."""
        return REGISTERS[register].unpack(self.registers[register])

    def _fault(self, instruction: Instruction) -> FaultCode:
        format = instruction.format
        if format is None:
            return FaultCode.UNKNOWN_OPCODE
        if instruction.has_reserved_bits:
            return FaultCode.RESERVED_BITS
        if not format.implemented:
            return FaultCode.UNIMPLEMENTED
        values = instruction.values
        for item in format.fields:
            if item.implemented is not None and values[item.name] not in item.implemented:
                return FaultCode.UNIMPLEMENTED
        match format.opcode:
            case Opcode.SYNCHRONIZE:
                return FaultCode.ILLEGAL_VALUE if values["units"] >> 5 else FaultCode.NONE
            case Opcode.SET_CONFIGURATION:
                return self._set_configuration_fault(values)
            case Opcode.READ_HOST_MEMORY | Opcode.WRITE_HOST_MEMORY:
                return self._host_fault(values, self.config.size)
            case Opcode.READ_HOST_MEMORY_ALTERNATE | Opcode.WRITE_HOST_MEMORY_ALTERNATE:
                return self._host_fault(values, self.register(Register.HOST_STRIDE)["stride"])
            case Opcode.READ_WEIGHTS:
                return self._read_weights_fault(values)
            case Opcode.MATRIX_MULTIPLY:
                return self._matrix_multiply_fault(values)
            case Opcode.ACTIVATE:
                return self._activate_fault(values)
        return FaultCode.NONE

    def _set_configuration_fault(self, values: dict[str, int]) -> FaultCode:
        register = register_format(values["register"])
        if register is None:
            return FaultCode.ILLEGAL_VALUE
        if not register.implemented:
            return FaultCode.UNIMPLEMENTED
        value = values["value"]
        if value & ~register.used_mask:
            return FaultCode.ILLEGAL_VALUE
        fields = register.unpack(value)
        match register.number:
            case Register.INPUT_FORMAT | Register.WEIGHT_FORMAT:
                low = -128 if fields["signed"] else 0
                if not low <= fields["zero_point"] <= low + 255:
                    return FaultCode.ILLEGAL_VALUE
            case Register.HOST_STRIDE:
                if fields["stride"] % self.config.host_alignment:
                    return FaultCode.ILLEGAL_VALUE
            case Register.LOAD_PARAMETERS:
                if fields["count"] == 0:
                    return FaultCode.ILLEGAL_VALUE
                if not self._in_unified_buffer(fields["unified_buffer"], PARAMETER_ROWS * fields["count"]):
                    return FaultCode.UNIFIED_BUFFER_RANGE
                if fields["first"] + fields["count"] > self.config.parameter_sets:
                    return FaultCode.PARAMETER_RANGE
        return FaultCode.NONE

    def _host_fault(self, values: dict[str, int], stride: int) -> FaultCode:
        if values["rows"] == 0 or values["host"] % self.config.host_alignment:
            return FaultCode.ILLEGAL_VALUE
        if not self._in_unified_buffer(values["unified_buffer"], values["rows"]):
            return FaultCode.UNIFIED_BUFFER_RANGE
        extent = host_extent(values["rows"], self.config.size, stride)
        if self.host is not None and not self.host.contains(values["host"], extent):
            return FaultCode.HOST_WINDOW
        return FaultCode.NONE

    def _read_weights_fault(self, values: dict[str, int]) -> FaultCode:
        if values["tiles"] == 0 or values["weights"] % self.config.weight_alignment:
            return FaultCode.ILLEGAL_VALUE
        extent = values["tiles"] * self.config.tile_bytes
        if self.weights is not None and not self.weights.contains(values["weights"], extent):
            return FaultCode.WEIGHT_WINDOW
        if len(self.outstanding) == self.config.weight_queue_depth:
            return FaultCode.WEIGHT_QUEUE_FULL
        return FaultCode.NONE

    def _matrix_multiply_fault(self, values: dict[str, int]) -> FaultCode:
        if values["rows"] == 0:
            return FaultCode.ILLEGAL_VALUE
        if not self._in_unified_buffer(values["unified_buffer"], values["rows"]):
            return FaultCode.UNIFIED_BUFFER_RANGE
        if not self._in_accumulators(values["accumulator"], values["rows"]):
            return FaultCode.ACCUMULATOR_RANGE
        if not (self.outstanding if values["next_tile"] else self.tile_in_array):
            return FaultCode.NO_TILE
        return FaultCode.NONE

    def _activate_fault(self, values: dict[str, int]) -> FaultCode:
        if values["rows"] == 0:
            return FaultCode.ILLEGAL_VALUE
        rows = values["rows"] * (4 if values["output"] == OutputFormat.INT32 else 1)
        if not self._in_unified_buffer(values["unified_buffer"], rows):
            return FaultCode.UNIFIED_BUFFER_RANGE
        if not self._in_accumulators(values["accumulator"], values["rows"]):
            return FaultCode.ACCUMULATOR_RANGE
        if values["parameters"] >= self.config.parameter_sets:
            return FaultCode.PARAMETER_RANGE
        return FaultCode.NONE

    def _in_unified_buffer(self, first: int, rows: int) -> bool:
        return first + rows <= self.config.unified_buffer_rows

    def _in_accumulators(self, first: int, rows: int) -> bool:
        return first + rows <= self.config.accumulator_rows

    def _advance(self, instruction: Instruction) -> None:
        values = instruction.values
        match instruction.format.opcode:
            case Opcode.HALT:
                self.begin_program()
            case Opcode.SET_CONFIGURATION:
                self.registers[Register(values["register"])] = values["value"]
            case Opcode.READ_WEIGHTS:
                self.outstanding.append(values["tiles"])
            case Opcode.MATRIX_MULTIPLY if values["next_tile"]:
                self.tile_in_array = True
                self.outstanding[0] -= 1
                if self.outstanding[0] == 0:
                    self.outstanding.popleft()
