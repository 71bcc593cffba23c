"""Random transfers between host memory, unified buffer, parameter sets and tables."""

from __future__ import annotations

from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.arch.isa import REGISTERS, Opcode, Register
from tb.lockstep.programs.builder import Builder
from tb.lockstep.programs.contents import HOST_TABLES, PARAMETER_KINDS, parameter_address, table_address

__all__ = ["load_parameters", "load_table", "transfer"]


def transfer(builder: Builder) -> None:
    """Emit a read or write of host memory, with or without a stride."""
    name = ("Read_Host_Memory", "Write_Host_Memory")[builder.between(0, 1)]
    stride = size = builder.config.size
    rows = builder.count(builder.config.unified_buffer_rows)
    if builder.has(Opcode.READ_HOST_MEMORY_ALTERNATE) and builder.probably(0.35):
        name += "_Alternate"
        if builder.probably(0.7):
            _set_stride(builder)
        stride = builder.register(Register.HOST_STRIDE)["stride"]
    room = builder.host.places - size
    if rows > 1 and (rows - 1) * stride > room:
        rows = 1 + room // stride
    host = builder.host.choose((rows - 1) * stride + size, builder.config.host_alignment)
    builder.emit(name, unified_buffer=builder.unified_buffer.choose(rows), rows=rows, host=host)


def _set_stride(builder: Builder) -> None:
    size, alignment = builder.config.size, builder.config.host_alignment
    most = REGISTERS[Register.HOST_STRIDE].field("stride").maximum
    strides = (0, alignment, size, size + alignment, 2 * size, 5 * alignment, most // alignment * alignment)
    builder.set(Register.HOST_STRIDE, stride=builder.one_of(*strides, weights=(0.1, 0.2, 0.1, 0.2, 0.2, 0.17, 0.03)))


def load_parameters(builder: Builder, first: int | None = None, kind: str | None = None) -> None:
    """Emit a load of parameters, usually after reading prepared sets from host memory.

    Parameters
    ----------
    builder
        Gets the instructions.
    first
        The first set; random by default.
    kind
        One of ``PARAMETER_KINDS`` for the first set; random by default.
    """
    config = builder.config
    if first is None:
        first = builder.one_of(*builder.used_parameter_sets())
    number = builder.between(0, len(PARAMETER_KINDS) - 1) if kind is None else PARAMETER_KINDS.index(kind)
    most = min(
        3, config.parameter_sets - first, config.unified_buffer_rows // PARAMETER_ROWS, len(PARAMETER_KINDS) - number
    )
    count = builder.between(1, most)
    rows = PARAMETER_ROWS * count
    unified_buffer = builder.unified_buffer.choose(rows)
    kinds: tuple[str, ...] = ("unknown",) * count
    if kind is not None or builder.probably(0.8):
        host = parameter_address(config, number)
        builder.emit("Read_Host_Memory", unified_buffer=unified_buffer, rows=rows, host=host)
        kinds = PARAMETER_KINDS[number : number + count]
    builder.set(Register.LOAD_PARAMETERS, unified_buffer=unified_buffer, first=first, count=count)
    builder.parameter_kinds |= dict(enumerate(kinds, first))


def load_table(builder: Builder) -> None:
    """Emit a load of a table, likewise; does nothing if the profile has no table or the unified buffer is too small."""
    config = builder.config
    rows = table_rows(config.size)
    if rows > config.unified_buffer_rows or not builder.has_register(Register.LOAD_TABLE):
        return
    unified_buffer = builder.unified_buffer.choose(rows)
    if builder.probably(0.7):
        host = table_address(config, builder.between(0, HOST_TABLES - 1))
        builder.emit("Read_Host_Memory", unified_buffer=unified_buffer, rows=rows, host=host)
    number = builder.between(0, TABLES - 1) if builder.probably(0.5) else 0
    builder.set(Register.LOAD_TABLE, unified_buffer=unified_buffer, number=number)
