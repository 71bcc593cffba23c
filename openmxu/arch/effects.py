"""The effects of instructions as one table: which rows of which memory they read or write.

Legality, hazards, the cycle model, random programs and testbenches derive from it. Only the RTL, which computes the
same ranges in a pipeline, and the interpreter, which executes instructions, define them a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from openmxu.arch.config import Config
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Operand, OutputFormat, Pooling, Register, Unit

__all__ = [
    "ACTION_EFFECTS",
    "EFFECTS",
    "OUTPUT_BYTES",
    "PARAMETER_ROWS",
    "TABLES",
    "TABLE_BYTES",
    "Access",
    "Effect",
    "Memory",
    "Role",
    "View",
    "accesses",
    "host_extent",
    "table_rows",
    "unit_of",
    "used_registers",
]

PARAMETER_ROWS = 8
"""Unified buffer rows of one parameter set."""

TABLES = 8
"""Tables that the activation unit holds."""

TABLE_BYTES = 256
"""Entries of a table."""

OUTPUT_BYTES = {output: 1 << output for output in OutputFormat}
"""Unified buffer rows of one result of Activate."""


def table_rows(size: int) -> int:
    """Unified buffer rows that LOAD_TABLE reads at array size ``size``."""
    return TABLE_BYTES // size


def host_extent(rows: int, size: int, stride: int) -> int:
    """Bytes from the first byte of the first row to the last byte of the last row."""
    return (rows - 1) * stride + size


class Memory(Enum):
    """Memories that instructions touch."""

    UNIFIED_BUFFER = "unified buffer"
    ACCUMULATORS = "accumulators"
    HOST = "host memory"
    WEIGHTS = "weight memory"
    PARAMETERS = "parameters"
    TABLES = "tables"


class Role(Enum):
    """The part of an instruction that touches a memory."""

    READ_HOST_MEMORY = "Read_Host_Memory"
    WRITE_HOST_MEMORY = "Write_Host_Memory"
    LOAD_WEIGHTS = "Load_Weights"
    READ_WEIGHTS = "Read_Weights"
    MATRIX_MULTIPLY = "MatrixMultiply"
    CONVOLVE = "Convolve"
    SOURCE = "Activate's source"
    OPERAND = "Activate's operand"
    RESULT = "Activate's result"
    ACTIVATE = "Activate"
    LOAD_PARAMETERS = "LOAD_PARAMETERS"
    LOAD_TABLE = "LOAD_TABLE"


class View(Protocol):
    """The fields that an effect depends on: integers for one instruction, arrays for many.

    ``view["rows"]`` is a field of the instruction, ``view[Register.HOST_STRIDE, "stride"]`` one of a configuration
    register when the instruction executes; for an action it is the value that the action writes.
    """

    config: Config

    def __getitem__(self, key: str | tuple[Register, str]) -> Any: ...


Term = Callable[[View], Any]
"""A number or a condition, computed from a view with operators that work on integers and arrays alike."""


def _constant(value: int | bool) -> Term:
    return lambda view: value


_ONE, _ALWAYS = _constant(1), _constant(True)


@dataclass(frozen=True)
class Effect:
    """``count`` items of ``each`` rows from ``first`` on; bytes of host and weight memory, sets of parameters.

    Attributes
    ----------
    role, memory, writes
        The part of the instruction, the memory that it touches, and whether it writes there.
    first, count, each
        The range.
    when
        Whether the instruction has this effect.
    """

    role: Role
    memory: Memory
    first: Term
    count: Term
    writes: bool = False
    each: Term = _ONE
    when: Term = _ALWAYS


def _field(name: str) -> Term:
    return lambda view: view[name]


def _register(register: Register, name: str) -> Term:
    return lambda view: view[register, name]


def _plane(register: Register) -> Term:
    return lambda view: view[register, "height"] * view[register, "width"]


def _width(wide: Term) -> Term:
    """Rows of an item: two if it is wide."""
    return lambda view: 1 + wide(view)


_UNIFIED_BUFFER = _field("unified_buffer")
_ROWS = _field("rows")


def _transfer(role: Role, stride: Term) -> tuple[Effect, ...]:
    def extent(view: View) -> Any:
        return host_extent(view["rows"], view.config.size, stride(view))

    reads_host = role is Role.READ_HOST_MEMORY
    return (
        Effect(role, Memory.UNIFIED_BUFFER, _UNIFIED_BUFFER, _ROWS, writes=reads_host),
        Effect(role, Memory.HOST, _field("host"), extent, writes=not reads_host),
    )


def _multiplication(role: Role, inputs: Term, outputs: Term) -> tuple[Effect, ...]:
    first, each = _field("accumulator"), _width(_field("wide_input"))
    return (
        Effect(role, Memory.UNIFIED_BUFFER, _UNIFIED_BUFFER, inputs, each=each),
        Effect(role, Memory.ACCUMULATORS, first, outputs, writes=True),
        Effect(role, Memory.ACCUMULATORS, first, outputs, when=lambda view: view["accumulate"] != 0),
    )


def _result_bytes(view: View) -> Any:
    return 1 << view["output"]


def _activation() -> tuple[Effect, ...]:
    def source(memory: Memory, pools: bool) -> Effect:
        from_buffer = memory is Memory.UNIFIED_BUFFER

        def when(view: View) -> Any:
            return ((view["from_unified_buffer"] != 0) == from_buffer) & ((view["pooling"] != Pooling.NONE) == pools)

        count = _plane(Register.POOLING_PLANE) if pools else _ROWS
        each = _width(_register(Register.SOURCE_FORMAT, "wide")) if from_buffer else _ONE
        return Effect(Role.SOURCE, memory, _field("source"), count, each=each, when=when)

    return (
        *(source(memory, pools) for memory in (Memory.UNIFIED_BUFFER, Memory.ACCUMULATORS) for pools in (False, True)),
        Effect(
            Role.OPERAND,
            Memory.UNIFIED_BUFFER,
            _register(Register.OPERAND_ADDRESS, "unified_buffer"),
            _ROWS,
            each=_width(_register(Register.OPERAND_FORMAT, "wide")),
            when=lambda view: view["operand"] != Operand.NONE,
        ),
        Effect(
            Role.RESULT,
            Memory.UNIFIED_BUFFER,
            _UNIFIED_BUFFER,
            _ROWS,
            writes=True,
            each=lambda view: 1 << view["output"],
        ),
        Effect(Role.ACTIVATE, Memory.PARAMETERS, _field("parameters"), _constant(1)),
        Effect(Role.ACTIVATE, Memory.TABLES, _field("table_number"), _ONE, when=lambda view: view["table"] != 0),
    )


def _load_parameters() -> tuple[Effect, ...]:
    role, register = Role.LOAD_PARAMETERS, Register.LOAD_PARAMETERS
    first, count = _register(register, "unified_buffer"), _register(register, "count")
    return (
        Effect(role, Memory.UNIFIED_BUFFER, first, lambda view: PARAMETER_ROWS * count(view)),
        Effect(role, Memory.PARAMETERS, _register(register, "first"), count, writes=True),
    )


def _load_table() -> tuple[Effect, ...]:
    first = _register(Register.LOAD_TABLE, "unified_buffer")
    return (
        Effect(Role.LOAD_TABLE, Memory.UNIFIED_BUFFER, first, lambda view: table_rows(view.config.size)),
        Effect(Role.LOAD_TABLE, Memory.TABLES, _register(Register.LOAD_TABLE, "number"), _ONE, writes=True),
    )


def _contiguous(view: View) -> int:
    return view.config.size


_STRIDE = _register(Register.HOST_STRIDE, "stride")

EFFECTS: Mapping[Opcode, tuple[Effect, ...]] = {
    Opcode.READ_HOST_MEMORY: _transfer(Role.READ_HOST_MEMORY, _contiguous),
    Opcode.READ_HOST_MEMORY_ALTERNATE: _transfer(Role.READ_HOST_MEMORY, _STRIDE),
    Opcode.WRITE_HOST_MEMORY: _transfer(Role.WRITE_HOST_MEMORY, _contiguous),
    Opcode.WRITE_HOST_MEMORY_ALTERNATE: _transfer(Role.WRITE_HOST_MEMORY, _STRIDE),
    Opcode.LOAD_WEIGHTS: (
        Effect(Role.LOAD_WEIGHTS, Memory.UNIFIED_BUFFER, _UNIFIED_BUFFER, lambda view: view.config.size),
    ),
    Opcode.READ_WEIGHTS: (
        Effect(
            Role.READ_WEIGHTS,
            Memory.WEIGHTS,
            _field("weights"),
            lambda view: view["tiles"] * view.config.tile_bytes,
        ),
    ),
    Opcode.MATRIX_MULTIPLY: _multiplication(Role.MATRIX_MULTIPLY, _ROWS, _ROWS),
    Opcode.CONVOLVE: _multiplication(
        Role.CONVOLVE, _plane(Register.CONVOLUTION_PLANE), lambda view: view["height"] * view["width"]
    ),
    Opcode.ACTIVATE: _activation(),
}
"""The effects of each instruction that has any."""

ACTION_EFFECTS: Mapping[Register, tuple[Effect, ...]] = {
    Register.LOAD_PARAMETERS: _load_parameters(),
    Register.LOAD_TABLE: _load_table(),
}
"""The effects of Set_Configuration, for each register whose writing is an action."""

_UNITS = {
    Role.READ_HOST_MEMORY: Unit.HOST_READ,
    Role.WRITE_HOST_MEMORY: Unit.HOST_WRITE,
    Role.LOAD_WEIGHTS: Unit.HOST_WRITE,
    Role.READ_WEIGHTS: Unit.WEIGHT,
    Role.MATRIX_MULTIPLY: Unit.MATRIX,
    Role.CONVOLVE: Unit.MATRIX,
}


class Access(NamedTuple):
    """Rows ``first`` up to, but not including, ``end`` of a memory; bytes of host memory, sets of parameters.

    ``rows_each`` is the number of rows of an element, an input or a result.
    """

    role: Role
    unit: Unit
    memory: Memory
    first: int
    end: int
    writes: bool
    rows_each: int = 1

    def overlaps(self, other: Access) -> bool:
        """Whether both touch a common row."""
        return self.memory is other.memory and self.first < other.end and other.first < self.end


class _Single:
    """The view of one instruction."""

    def __init__(self, instruction: Instruction, registers: Mapping[Register, int], config: Config) -> None:
        self.config = config
        self._values = instruction.values
        self._registers = registers
        if instruction.opcode is Opcode.SET_CONFIGURATION:
            self._registers = {**registers, Register(instruction["register"]): instruction["value"]}

    def __getitem__(self, key: str | tuple[Register, str]) -> int:
        if isinstance(key, str):
            return self._values[key]
        register, name = key
        return REGISTERS[register].field(name).extract(self._registers[register])


def _effects_of(instruction: Instruction) -> tuple[Effect, ...]:
    if instruction.opcode is None:
        return ()
    if instruction.opcode is Opcode.SET_CONFIGURATION:
        return ACTION_EFFECTS.get(Register(instruction["register"]), ())
    return EFFECTS.get(instruction.opcode, ())


def unit_of(instruction: Instruction) -> Unit | None:
    """The unit that executes a legal instruction; ``None`` for the dispatcher itself."""
    effects = _effects_of(instruction)
    return _UNITS.get(effects[0].role, Unit.ACTIVATION) if effects else None


def used_registers(instruction: Instruction) -> set[Register]:
    """The configuration registers whose values a legal instruction uses."""
    values = instruction.values
    match instruction.opcode:
        case Opcode.READ_HOST_MEMORY_ALTERNATE | Opcode.WRITE_HOST_MEMORY_ALTERNATE:
            return {Register.HOST_STRIDE}
        case Opcode.READ_WEIGHTS | Opcode.LOAD_WEIGHTS:
            return {Register.WEIGHT_FORMAT}
        case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE as opcode:
            used = {Register.CONVOLUTION_PLANE} if opcode is Opcode.CONVOLVE else set()
            return used if values["wide_input"] else used | {Register.INPUT_FORMAT}
        case Opcode.ACTIVATE:
            used = set()
            if values["from_unified_buffer"]:
                used.add(Register.SOURCE_FORMAT)
            if values["pooling"] != Pooling.NONE:
                used |= {Register.POOLING_WINDOW, Register.POOLING_PLANE}
            if values["operand"] != Operand.NONE:
                used |= {Register.OPERAND_ADDRESS, Register.OPERAND_FORMAT}
            if values["operand"] == Operand.ADD:
                used.add(Register.OPERAND_SCALE)
            if values["output"] != OutputFormat.INT32:
                used.add(Register.OUTPUT_FORMAT)
            return used
    return set()


def accesses(instruction: Instruction, registers: Mapping[Register, int], config: Config) -> list[Access]:
    """The memory accesses of a legal instruction.

    Parameters
    ----------
    registers
        The configuration registers' values before the instruction.
    config
        Sizes of the core.
    """
    effects = _effects_of(instruction)
    found: list[Access] = []
    if not effects:
        return found
    view = _Single(instruction, registers, config)
    for effect in effects:
        if effect.when is _ALWAYS or effect.when(view):
            first, each = effect.first(view), effect.each(view)
            unit = _UNITS.get(effect.role, Unit.ACTIVATION)
            end = first + effect.count(view) * each
            found.append(Access(effect.role, unit, effect.memory, first, end, effect.writes, each))
    return found
