"""Random Activate instructions of all modes."""

from __future__ import annotations

from dataclasses import dataclass

from openmxu.arch.effects import OUTPUT_BYTES, TABLES
from openmxu.arch.isa import Opcode, Operand, OutputFormat, Pooling, Register
from tb.lockstep.programs.builder import Builder
from tb.lockstep.programs.formats import set_format
from tb.lockstep.programs.transfers import load_parameters

__all__ = ["activate"]

_MOST_CYCLES = 1200
"""Maximum number of cycles of an instruction, unless a single result takes more; keeps programs short."""

_MOST_POSITIONS = 64
"""Maximum number of positions in a window."""

_ATTEMPTS = 12


@dataclass(frozen=True)
class _Mode:
    from_unified_buffer: bool
    pooling: Pooling
    operand: Operand
    output: OutputFormat
    table: bool
    table_number: int


def activate(builder: Builder) -> None:
    """Emit an Activate, sometimes after writing the registers that it uses."""
    mode = _mode(builder)
    if mode.from_unified_buffer and builder.probably(0.4):
        set_format(builder, Register.SOURCE_FORMAT)
    if mode.operand is not Operand.NONE and builder.probably(0.4):
        set_format(builder, Register.OPERAND_FORMAT)
    if mode.operand is Operand.ADD and builder.probably(0.35):
        set_format(builder, Register.OPERAND_SCALE)
    parameters = _parameters(builder, mode)
    rows = _pooled_rows(builder, mode) if mode.pooling is not Pooling.NONE else _plain_rows(builder, mode)
    for fewer in (rows, 1):
        if _place(builder, mode, parameters, fewer):
            return


def _mode(builder: Builder) -> _Mode:
    if not builder.has(Opcode.ACTIVATE, "output"):
        return _Mode(False, Pooling.NONE, Operand.NONE, OutputFormat.BYTE, False, 0)
    output = OutputFormat(builder.one_of(*OutputFormat, weights=(0.5, 0.25, 0.25)))
    operand = Operand(builder.one_of(*Operand, weights=(0.55, 0.25, 0.2)))
    if operand is Operand.ADD and output is OutputFormat.INT32:
        operand = Operand.MULTIPLY
    from_unified_buffer = builder.probably(0.45)
    pooling = Pooling(builder.one_of(*Pooling, weights=(0.55, 0.225, 0.225)))
    table = output is OutputFormat.BYTE and builder.probably(0.4)
    table_number = builder.between(0, TABLES - 1) if table and builder.probably(0.5) else 0
    return _Mode(from_unified_buffer, pooling, operand, output, table, table_number)


def _parameters(builder: Builder, mode: _Mode) -> int:
    """Choose a parameter set, usually one that spreads the outputs; if none does, maybe load one."""
    sets = builder.used_parameter_sets()
    if builder.probably(0.2):
        return builder.one_of(*sets)
    if mode.from_unified_buffer:
        wide = builder.register(Register.SOURCE_FORMAT)["wide"]
        kind = "words" if wide or mode.operand is Operand.MULTIPLY else "bytes"
    else:
        kind = "products" if mode.operand is Operand.MULTIPLY or builder.probably(0.3) else "sums"
    fitting = [number for number in sets if builder.parameter_kinds.get(number) == kind]
    if fitting or not builder.probably(0.4):
        return builder.one_of(*(fitting or sets))
    first = builder.one_of(*sets)
    load_parameters(builder, first, kind)
    return first


def _source_room(builder: Builder, mode: _Mode) -> int:
    """Maximum number of source elements; in the unified buffer, they may take half of it."""
    if not mode.from_unified_buffer:
        return builder.config.accumulator_rows
    return builder.config.unified_buffer_rows // 2 >> builder.register(Register.SOURCE_FORMAT)["wide"]


def _plain_rows(builder: Builder, mode: _Mode) -> int:
    results = builder.config.unified_buffer_rows // 2 // OUTPUT_BYTES[mode.output]
    return min(builder.count(min(_source_room(builder, mode), results)), _affordable(builder, mode, 1))


def _affordable(builder: Builder, mode: _Mode, positions: int) -> int:
    """Number of results that do not take too many cycles."""
    cycles = positions * builder.config.column_groups * OUTPUT_BYTES[mode.output]
    return max(1, _MOST_CYCLES // cycles)


def _pooled_rows(builder: Builder, mode: _Mode) -> int:
    """Number of results over a plane; writes the registers if their values cannot be used, and sometimes anyway."""
    room = _source_room(builder, mode)
    plane, window = builder.register(Register.POOLING_PLANE), builder.register(Register.POOLING_WINDOW)
    positions = window["height"] * window["width"]
    usable = 0 < plane["height"] * plane["width"] <= room and plane["output_width"] and 0 < positions <= _MOST_POSITIONS
    natural = builder.count(24)
    if not usable or builder.probably(0.45):
        natural = _set_pooling(builder, room)
        window = builder.register(Register.POOLING_WINDOW)
        positions = window["height"] * window["width"]
    most = builder.config.unified_buffer_rows // 4 // OUTPUT_BYTES[mode.output]
    return min(natural, most, _affordable(builder, mode, positions))


def _set_pooling(builder: Builder, room: int) -> int:
    """Write both registers; returns the number of results of the usual output size, or another number."""
    height = min(builder.between(1, 8), room)
    width = min(builder.between(1, 8), room // height)
    kind = builder.rng.random()
    if kind < 0.45:
        window = {"height": builder.between(1, 3), "width": builder.between(1, 3)}
        window |= {"stride_y": builder.between(1, 3), "stride_x": builder.between(1, 3)}
        window |= {"pad_top": builder.between(0, 1), "pad_left": builder.between(0, 1)}
    elif kind < 0.6:
        window = {"height": height, "width": width}
    else:
        window = {"height": builder.between(1, 5), "width": builder.between(1, 5)}
        window |= {name: builder.one_of(0, 1, 2, 3, builder.between(0, 255)) for name in ("stride_y", "stride_x")}
        window |= {name: builder.one_of(0, 1, 2, 4, 255, builder.between(0, 255)) for name in ("pad_top", "pad_left")}
    builder.set(Register.POOLING_WINDOW, **window)
    outputs = [
        max(1, (length + 2 * window.get(pad, 0) - window[side]) // max(1, window.get(stride, 1)) + 1)
        for length, side, stride, pad in (
            (height, "height", "stride_y", "pad_top"),
            (width, "width", "stride_x", "pad_left"),
        )
    ]
    output_width = min(outputs[1], 65535) if builder.probably(0.75) else builder.one_of(1, 2, 5, 65535)
    builder.set(Register.POOLING_PLANE, height=height, width=width, output_width=output_width)
    return min(outputs[0], 8) * min(outputs[1], 8) if builder.probably(0.6) else builder.count(24)


def _place(builder: Builder, mode: _Mode, parameters: int, rows: int) -> bool:
    """Emit the instruction with ranges such that it reads no row that it writes; false if none were found."""
    ranges = builder.unified_buffer
    written = OUTPUT_BYTES[mode.output] * rows
    plane = builder.register(Register.POOLING_PLANE)
    elements = rows if mode.pooling is Pooling.NONE else plane["height"] * plane["width"]
    source_rows = operand_rows = 0
    if mode.from_unified_buffer:
        source_rows = elements << builder.register(Register.SOURCE_FORMAT)["wide"]
    if mode.operand is not Operand.NONE:
        operand_rows = rows << builder.register(Register.OPERAND_FORMAT)["wide"]
    if max(written, source_rows, operand_rows) > ranges.places:
        return False
    for _ in range(_ATTEMPTS):
        source = ranges.draw(source_rows) if source_rows else 0
        operand = ranges.draw(operand_rows) if operand_rows else 0
        read = [range(source, source + source_rows), range(operand, operand + operand_rows)]
        target = _target(builder, written, read)
        if all(target + written <= rows_read.start or rows_read.stop <= target for rows_read in read if rows_read):
            break
    else:
        return False
    ranges.remember(target, written)
    if source_rows:
        ranges.remember(source, source_rows)
    else:
        source = builder.accumulators.choose(elements)
    if operand_rows:
        ranges.remember(operand, operand_rows)
        if builder.register(Register.OPERAND_ADDRESS)["unified_buffer"] != operand or builder.probably(0.2):
            builder.set(Register.OPERAND_ADDRESS, unified_buffer=operand)
    builder.emit(
        "Activate",
        unified_buffer=target,
        source=source,
        rows=rows,
        parameters=parameters,
        from_unified_buffer=mode.from_unified_buffer,
        pooling=mode.pooling,
        operand=mode.operand,
        output=mode.output,
        table=mode.table,
        table_number=mode.table_number,
    )
    return True


def _target(builder: Builder, written: int, read: list[range]) -> int:
    """First row of the results, often adjacent to the rows that are read."""
    beside = [place for rows in read if rows for place in (rows.start - written, rows.stop)]
    beside = [place for place in beside if 0 <= place <= builder.unified_buffer.places - written]
    if beside and builder.probably(0.35):
        return builder.one_of(*beside)
    return builder.unified_buffer.draw(written)
