"""Random Read_Weights, Load_Weights, MatrixMultiply and Convolve instructions."""

from __future__ import annotations

from openmxu.arch.isa import Opcode, Register, format_named
from tb.lockstep.programs.builder import Builder
from tb.lockstep.programs.formats import set_format

__all__ = ["load_and_multiply", "load_weights", "multiply", "read_weights"]

_MOST_ROWS = 200
"""Maximum number of rows that enter the array in one instruction, over all passes; keeps programs short."""

_SIDES = (1, 2, 3, 4, 5, 7, 8)


def read_weights(builder: Builder) -> None:
    """Queue tiles; if the queue is full, emit a multiplication instead."""
    config = builder.config
    if len(builder.checker.outstanding) == config.weight_queue_depth:
        multiply(builder)
        return
    most = min(builder.weights.places // config.tile_bytes, config.weight_fifo_tiles + 2)
    tiles = builder.one_of(1, 2, builder.between(1, most), weights=(0.5, 0.25, 0.25))
    address = builder.weights.choose(tiles * config.tile_bytes, config.weight_alignment)
    builder.emit("Read_Weights", tiles=tiles, weights=address)


def load_weights(builder: Builder) -> None:
    """Queue a tile of the unified buffer; if a Load_Weights would fault, emit another instruction instead."""
    if not builder.has(Opcode.LOAD_WEIGHTS):
        read_weights(builder)
        return
    if not builder.checker.may_load:
        multiply(builder)
        return
    if builder.register(Register.WEIGHT_FORMAT)["wide"]:
        set_format(builder, Register.WEIGHT_FORMAT, may_be_wide=False)
    first = builder.unified_buffer.choose(builder.config.size)
    builder.emit("Load_Weights", transposed=builder.probably(0.6), unified_buffer=first)


def load_and_multiply(builder: Builder) -> None:
    """Several Load_Weights in a row, and multiplications that take their tiles."""
    for _ in range(builder.between(1, 3)):
        load_weights(builder)
    for _ in range(builder.between(1, 3)):
        multiply(builder)


def multiply(builder: Builder) -> None:
    """Emit a MatrixMultiply or a Convolve with operands of any width."""
    if not builder.checker.outstanding and not builder.checker.tile_in_array:
        read_weights(builder)
    flags = _flags(builder)
    passes = (1 + flags["wide_input"]) * (1 + flags["wide_weights"])
    if builder.has(Opcode.CONVOLVE) and builder.probably(0.45):
        _convolve(builder, flags, _MOST_ROWS // passes)
    else:
        _matrix_multiply(builder, flags, _MOST_ROWS // passes)


def _flags(builder: Builder) -> dict[str, int]:
    queued, tile_in_array = sum(builder.checker.outstanding), builder.checker.tile_in_array
    next_tile = queued > 0 and (not tile_in_array or builder.probably(0.6))
    has_wide = builder.has(Opcode.MATRIX_MULTIPLY, "wide_weights")
    wide_weights = has_wide and next_tile and queued > 1 and builder.probably(0.4)
    return {
        "accumulate": builder.probably(0.5),
        "next_tile": next_tile,
        "wide_input": has_wide and builder.probably(0.3),
        "wide_weights": wide_weights,
    }


def _matrix_multiply(builder: Builder, flags: dict[str, int], most: int) -> None:
    config, wide = builder.config, flags["wide_input"]
    rows = builder.count(min(most, config.unified_buffer_rows >> wide, config.accumulator_rows))
    builder.emit(
        "MatrixMultiply",
        **flags,
        unified_buffer=builder.unified_buffer.choose(rows << wide),
        accumulator=builder.accumulators.choose(rows),
        rows=rows,
    )


def _convolve(builder: Builder, flags: dict[str, int], most: int) -> None:
    wide = flags["wide_input"]
    room = builder.config.unified_buffer_rows >> wide
    plane = builder.register(Register.CONVOLUTION_PLANE)
    if not 0 < plane["height"] * plane["width"] <= room or builder.probably(0.4):
        plane = _set_plane(builder, room)
    most = min(most, builder.config.accumulator_rows)
    height = builder.between(1, min(8, most))
    width = builder.between(1, min(8, most // height))
    builder.emit(
        "Convolve",
        **flags,
        unified_buffer=builder.unified_buffer.choose(plane["height"] * plane["width"] << wide),
        accumulator=builder.accumulators.choose(height * width),
        height=height,
        width=width,
        dy=_offset(builder, plane["height"], height, plane["stride_y"]),
        dx=_offset(builder, plane["width"], width, plane["stride_x"]),
    )


def _set_plane(builder: Builder, room: int) -> dict[str, int]:
    height = min(builder.one_of(*_SIDES), room)
    width = min(builder.one_of(*_SIDES), room // height)
    if builder.probably(0.05):
        width = room // height  # up to the last row of the memory
    strides = {
        name: builder.one_of(1, 1, 1, 2, 3, 0, builder.between(4, 255), 255) for name in ("stride_y", "stride_x")
    }
    builder.set(Register.CONVOLUTION_PLANE, height=height, width=width, **strides)
    return builder.register(Register.CONVOLUTION_PLANE)


def _offset(builder: Builder, length: int, outputs: int, stride: int) -> int:
    """Position of the first output: with padding on either side or both, without padding, or far away."""
    field = format_named("Convolve").field("dy")
    kind = builder.rng.random()
    if kind < 0.5:
        offset = builder.between(-2, 2)
    elif kind < 0.65:
        offset = length - 1 - (outputs - 1) * stride + builder.between(-2, 2)  # the last output at the end
    elif kind < 0.8:
        offset = length + builder.between(-2, 1)
    elif kind < 0.9:
        offset = -(outputs - 1) * stride + builder.between(-1, 1)  # the last output at the beginning
    else:
        offset = builder.one_of(field.minimum, field.maximum, builder.between(field.minimum, field.maximum))
    return min(max(offset, field.minimum), field.maximum)
