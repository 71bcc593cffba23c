"""The rules of legal programs: one sequential check that assembler, interpreter and random programs share.

A program has no branches, so a fault depends only on the configuration, the driver's memory windows and the
instructions before it. The RTL's dispatcher makes the same checks in the same order.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from openmxu.arch.config import Config
from openmxu.arch.effects import Access, Memory, accesses
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, UNITS, Instruction, Opcode, Operand, OutputFormat, Pooling, Register

__all__ = ["LegalityChecker", "LegalityState", "Window"]

_RANGE_FAULTS = {
    Memory.UNIFIED_BUFFER: FaultCode.UNIFIED_BUFFER_RANGE,
    Memory.ACCUMULATORS: FaultCode.ACCUMULATOR_RANGE,
    Memory.PARAMETERS: FaultCode.PARAMETER_RANGE,
    Memory.HOST: FaultCode.HOST_WINDOW,
    Memory.WEIGHTS: FaultCode.WEIGHT_WINDOW,
}
"""The fault raised by a range outside each memory, in the order of the checks."""


@dataclass(frozen=True)
class Window:
    """Byte addresses from ``base`` up to, but not including, ``limit``."""

    base: int
    limit: int

    def contains(self, address: int, length: int) -> bool:
        """Whether all of ``length`` bytes at ``address`` lie inside."""
        return self.base <= address and address + length <= self.limit


LegalityState = tuple[Window | None, Window | None, tuple[int, ...], tuple[tuple[int, ...], bool]]
"""A hashable state of a :class:`LegalityChecker`."""


@functools.lru_cache(1 << 12)
def _fields(register: Register, value: int) -> Mapping[str, int]:
    return MappingProxyType(REGISTERS[register].unpack(value))


def _unfitting(zero_point: int, signed: bool, wide: bool) -> str | None:
    """Why a zero point is no value of its 8-bit or 16-bit format; ``None`` if it is one."""
    values = 1 << (16 if wide else 8)
    low = -values // 2 if signed else 0
    if low <= zero_point < low + values:
        return None
    name = f"{'int' if signed else 'uint'}{16 if wide else 8}"
    return f"zero_point must be from {low} to {low + values - 1}, the values of {name}, not {zero_point}"


def _zero(values: Mapping[str, int], *names: str, of: str | None = None) -> str | None:
    """Which of these fields is 0, of an instruction or of the configuration register ``of``."""
    for name in names:
        if values[name] == 0:
            return f"{name}{f' of {of}' if of else ''} must be at least 1, not 0"
    return None


def _misaligned(values: Mapping[str, int], name: str, alignment: int) -> str | None:
    value = values[name]
    return f"{name} must be a multiple of {alignment} bytes, not {value:#x}" if value % alignment else None


def _wide_without_tile(values: Mapping[str, int]) -> str | None:
    return "wide_weights needs next_tile" if values["wide_weights"] > values["next_tile"] else None


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
        """The fault that the next instruction raises; with ``NONE`` it counts as executed and the state is updated."""
        fault = self.fault(instruction)
        if fault is FaultCode.NONE:
            self.advance(instruction)
        return fault

    def begin_program(self) -> None:
        """Forget queued weights, as Halt and clearing a fault do."""
        self.outstanding.clear()
        self.tile_in_array = False

    @property
    def state(self) -> LegalityState:
        """All that decides, together with the configuration, which fault a program raises."""
        queue = tuple(self.outstanding), self.tile_in_array
        return self.host, self.weights, tuple(self.registers.values()), queue

    def register(self, register: Register) -> Mapping[str, int]:
        """The fields of a configuration register as the program has set it."""
        return _fields(register, self.registers[register])

    def fault(self, instruction: Instruction) -> FaultCode:
        """The fault that the next instruction would raise; the state does not change."""
        format = self.config.features.format(instruction.word & 0xFF)
        if format is None:
            return FaultCode.UNKNOWN_OPCODE
        if instruction.word & ~format.defined_mask:
            return FaultCode.RESERVED_BITS
        values = instruction.values
        if any(values[name] not in known for name, known in format.implemented.items()):
            return FaultCode.UNIMPLEMENTED
        if self._illegal_value(format.opcode, values) is not None:
            return FaultCode.ILLEGAL_VALUE
        touched = accesses(instruction, self.registers, self.config)
        fault = self._range_fault(touched)
        if fault is not FaultCode.NONE:
            return fault
        if format.opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE) and not self._has_tiles(values):
            return FaultCode.NO_TILE
        if format.opcode is Opcode.READ_WEIGHTS and len(self.outstanding) == self.config.weight_queue_depth:
            return FaultCode.WEIGHT_QUEUE_FULL
        if format.opcode is Opcode.LOAD_WEIGHTS and not self.may_load:
            return FaultCode.WEIGHT_QUEUE_FULL
        rows = [access for access in touched if access.memory is Memory.UNIFIED_BUFFER]
        if len(rows) > 1 and any(
            one.writes and not other.writes and one.overlaps(other) for one in rows for other in rows
        ):
            return FaultCode.UNIFIED_BUFFER_OVERLAP
        return FaultCode.NONE

    @property
    def may_load(self) -> bool:
        """Whether a Load_Weights would have room: its tile then waits for no tile that a later instruction takes."""
        has_entry = len(self.outstanding) < self.config.weight_queue_depth
        return has_entry and sum(self.outstanding) < self.config.weight_fifo_tiles

    def illegal_value(self, instruction: Instruction) -> str | None:
        """The field that makes the next instruction fault as ``ILLEGAL_VALUE``, and why; ``None`` if none does."""
        format = self.config.features.format(instruction.word & 0xFF)
        return None if format is None else self._illegal_value(format.opcode, instruction.values)

    def _illegal_value(self, opcode: Opcode, values: Mapping[str, int]) -> str | None:
        """The rule that the fields break by themselves or with the configuration registers."""
        match opcode:
            case Opcode.SYNCHRONIZE:
                return f"units has bits above bit {len(UNITS) - 1}" if values["units"] >> len(UNITS) else None
            case Opcode.SET_CONFIGURATION:
                return self._illegal_configuration(values)
            case (
                Opcode.READ_HOST_MEMORY
                | Opcode.READ_HOST_MEMORY_ALTERNATE
                | Opcode.WRITE_HOST_MEMORY
                | Opcode.WRITE_HOST_MEMORY_ALTERNATE
            ):
                return _zero(values, "rows") or _misaligned(values, "host", self.config.host_alignment)
            case Opcode.LOAD_WEIGHTS:
                return "WEIGHT_FORMAT is wide" if self.register(Register.WEIGHT_FORMAT)["wide"] else None
            case Opcode.READ_WEIGHTS:
                return _zero(values, "tiles") or _misaligned(values, "weights", self.config.weight_alignment)
            case Opcode.MATRIX_MULTIPLY:
                return _zero(values, "rows") or _wide_without_tile(values)
            case Opcode.CONVOLVE:
                plane = self.register(Register.CONVOLUTION_PLANE)
                return (
                    _zero(plane, "height", "width", of="CONVOLUTION_PLANE")
                    or _zero(values, "height", "width")
                    or _wide_without_tile(values)
                )
            case Opcode.ACTIVATE:
                return self._illegal_activation(values)
        return None

    def _illegal_configuration(self, values: Mapping[str, int]) -> str | None:
        register = self.config.features.register(values["register"])
        if register is None:
            return f"there is no register {values['register']}"
        if values["value"] & ~register.used_mask:
            return f"value has bits that belong to no field of {register.number.name}"
        fields = register.unpack(values["value"])
        match register.number:
            case Register.INPUT_FORMAT | Register.WEIGHT_FORMAT:
                if fields.get("wide") and (fields["zero_point"] or fields["signed"]):
                    return "wide weights have no zero_point and are always signed: leave out both fields"
                return _unfitting(fields["zero_point"], bool(fields["signed"]), wide=False)
            case Register.SOURCE_FORMAT | Register.OPERAND_FORMAT:
                return _unfitting(fields["zero_point"], bool(fields["signed"]), bool(fields["wide"]))
            case Register.HOST_STRIDE:
                return _misaligned(fields, "stride", self.config.host_alignment)
            case Register.LOAD_PARAMETERS:
                return _zero(fields, "count")
        return None

    def _illegal_activation(self, values: Mapping[str, int]) -> str | None:
        output = values["output"]
        if values["pooling"] != Pooling.NONE:
            window, plane = self.register(Register.POOLING_WINDOW), self.register(Register.POOLING_PLANE)
            zero = _zero(window, "height", "width", of="POOLING_WINDOW") or _zero(plane, *plane, of="POOLING_PLANE")
            if zero is not None:
                return zero
        if values["table"] and output != OutputFormat.BYTE:
            return "table needs output=BYTE"
        if values["operand"] == Operand.ADD and output == OutputFormat.INT32:
            return "operand=ADD and output=INT32 exclude each other"
        return _zero(values, "rows")

    def _range_fault(self, touched: list[Access]) -> FaultCode:
        """The fault of the first range that does not fit, in the order of :data:`_RANGE_FAULTS`."""
        outside = [access.memory for access in touched if not self._contains(access)]
        if not outside:
            return FaultCode.NONE
        return next(fault for memory, fault in _RANGE_FAULTS.items() if memory in outside)

    def _contains(self, access: Access) -> bool:
        """Whether a range lies in its memory."""
        memory = access.memory
        if memory is Memory.HOST or memory is Memory.WEIGHTS:
            window = self.host if memory is Memory.HOST else self.weights
            return window is None or window.contains(access.first, access.end - access.first)
        limit = self._limits.get(memory)
        return limit is None or (access.first >= 0 and access.end <= limit)

    @functools.cached_property
    def _limits(self) -> dict[Memory, int]:
        """The rows of the memories; every number of a table that fits its field is one."""
        return {
            Memory.UNIFIED_BUFFER: self.config.unified_buffer_rows,
            Memory.ACCUMULATORS: self.config.accumulator_rows,
            Memory.PARAMETERS: self.config.parameter_sets,
        }

    def _has_tiles(self, values: Mapping[str, int]) -> bool:
        if values["next_tile"]:
            return sum(self.outstanding) >= 1 + values["wide_weights"]
        return self.tile_in_array

    def advance(self, instruction: Instruction) -> None:
        """Update the state by an instruction that raises no fault."""
        values = instruction.values
        match instruction.opcode:
            case Opcode.HALT:
                self.begin_program()
            case Opcode.SET_CONFIGURATION:
                self.registers[Register(values["register"])] = values["value"]
            case Opcode.READ_WEIGHTS:
                self.outstanding.append(values["tiles"])
            case Opcode.LOAD_WEIGHTS:
                self.outstanding.append(1)
            case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE if values["next_tile"]:
                self.tile_in_array = True
                for _ in range(1 + values["wide_weights"]):
                    self.outstanding[0] -= 1
                    if self.outstanding[0] == 0:
                        self.outstanding.popleft()
