"""Which programs are legal: one sequential check that assembler, interpreter and random programs share.

A program has no branches, so a fault depends only on the configuration, the driver's memory windows and the
instructions before it. The RTL's dispatcher makes the same checks in the same order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Operand, OutputFormat, Pooling, Register

__all__ = ["OUTPUT_BYTES", "PARAMETER_ROWS", "TABLE_BYTES", "LegalityChecker", "Window", "host_extent", "table_rows"]

PARAMETER_ROWS = 8
"""Unified buffer rows of one parameter set."""

TABLE_BYTES = 256
"""Entries of the activation unit's table."""

OUTPUT_BYTES = {OutputFormat.BYTE: 1, OutputFormat.WORD: 2, OutputFormat.INT32: 4}
"""Unified buffer rows of one result of Activate."""


def table_rows(size: int) -> int:
    """Unified buffer rows that LOAD_TABLE reads at array size ``size``."""
    return TABLE_BYTES // size


@dataclass(frozen=True)
class Window:
    """Byte addresses from ``base`` up to, but not including, ``limit``."""

    base: int
    limit: int

    def contains(self, address: int, length: int) -> bool:
        """Whether all of ``length`` bytes at ``address`` lie inside."""
        return self.base <= address and address + length <= self.limit


@dataclass(frozen=True)
class _Rows:
    """``rows`` rows of a memory from ``first`` on."""

    first: int
    rows: int

    def overlaps(self, other: _Rows) -> bool:
        return self.first < other.first + other.rows and other.first < self.first + self.rows


def _fits(zero_point: int, signed: bool, wide: bool) -> bool:
    """Whether a zero point is a value of its 8-bit or 16-bit format."""
    values = 1 << (16 if wide else 8)
    low = -values // 2 if signed else 0
    return low <= zero_point < low + values


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
        format = self.config.features.format(instruction.word & 0xFF)
        if format is None:
            return FaultCode.UNKNOWN_OPCODE
        if instruction.word & ~format.defined_mask:
            return FaultCode.RESERVED_BITS
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
                rows = values["rows"]
                return self._matrix_fault(values, inputs=rows, outputs=rows)
            case Opcode.CONVOLVE:
                plane = self.register(Register.CONVOLUTION_PLANE)
                outputs = values["height"] * values["width"]
                return self._matrix_fault(values, inputs=plane["height"] * plane["width"], outputs=outputs)
            case Opcode.ACTIVATE:
                return self._activate_fault(values)
        return FaultCode.NONE

    def _set_configuration_fault(self, values: dict[str, int]) -> FaultCode:
        register = self.config.features.register(values["register"])
        if register is None:
            return FaultCode.ILLEGAL_VALUE
        value = values["value"]
        if value & ~register.used_mask:
            return FaultCode.ILLEGAL_VALUE
        fields = register.unpack(value)
        match register.number:
            case Register.INPUT_FORMAT | Register.WEIGHT_FORMAT:
                if not _fits(fields["zero_point"], bool(fields["signed"]), wide=False):
                    return FaultCode.ILLEGAL_VALUE
                if fields.get("wide") and (fields["zero_point"] or fields["signed"]):
                    return FaultCode.ILLEGAL_VALUE
            case Register.SOURCE_FORMAT | Register.OPERAND_FORMAT:
                if not _fits(fields["zero_point"], bool(fields["signed"]), bool(fields["wide"])):
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
            case Register.LOAD_TABLE:
                if not self._in_unified_buffer(fields["unified_buffer"], table_rows(self.config.size)):
                    return FaultCode.UNIFIED_BUFFER_RANGE
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

    def _matrix_fault(self, values: dict[str, int], inputs: int, outputs: int) -> FaultCode:
        if inputs == 0 or outputs == 0 or (values["wide_weights"] and not values["next_tile"]):
            return FaultCode.ILLEGAL_VALUE
        if not self._in_unified_buffer(values["unified_buffer"], inputs << values["wide_input"]):
            return FaultCode.UNIFIED_BUFFER_RANGE
        if not self._in_accumulators(values["accumulator"], outputs):
            return FaultCode.ACCUMULATOR_RANGE
        if values["next_tile"]:
            enough = sum(self.outstanding) >= 1 + values["wide_weights"]
            return FaultCode.NONE if enough else FaultCode.NO_TILE
        return FaultCode.NONE if self.tile_in_array else FaultCode.NO_TILE

    def _activate_fault(self, values: dict[str, int]) -> FaultCode:
        rows, output, operand = values["rows"], values["output"], values["operand"]
        sources = rows
        if rows == 0:
            return FaultCode.ILLEGAL_VALUE
        if values["pooling"] != Pooling.NONE:
            window, plane = self.register(Register.POOLING_WINDOW), self.register(Register.POOLING_PLANE)
            if not (window["height"] and window["width"] and all(plane.values())):
                return FaultCode.ILLEGAL_VALUE
            sources = plane["height"] * plane["width"]
        if values["table"] and output != OutputFormat.BYTE:
            return FaultCode.ILLEGAL_VALUE
        if operand == Operand.ADD and output == OutputFormat.INT32:
            return FaultCode.ILLEGAL_VALUE

        written = _Rows(values["unified_buffer"], rows * OUTPUT_BYTES[OutputFormat(output)])
        read = []
        if values["from_unified_buffer"]:
            read.append(_Rows(values["source"], sources << self.register(Register.SOURCE_FORMAT)["wide"]))
        if operand != Operand.NONE:
            first = self.register(Register.OPERAND_ADDRESS)["unified_buffer"]
            read.append(_Rows(first, rows << self.register(Register.OPERAND_FORMAT)["wide"]))
        if not all(self._in_unified_buffer(range_.first, range_.rows) for range_ in [written, *read]):
            return FaultCode.UNIFIED_BUFFER_RANGE
        if not values["from_unified_buffer"] and not self._in_accumulators(values["source"], sources):
            return FaultCode.ACCUMULATOR_RANGE
        if values["parameters"] >= self.config.parameter_sets:
            return FaultCode.PARAMETER_RANGE
        if any(written.overlaps(range_) for range_ in read):
            return FaultCode.UNIFIED_BUFFER_OVERLAP
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
            case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE if values["next_tile"]:
                self.tile_in_array = True
                for _ in range(1 + values["wide_weights"]):
                    self.outstanding[0] -= 1
                    if self.outstanding[0] == 0:
                        self.outstanding.popleft()
