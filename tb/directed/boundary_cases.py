"""Cases just beyond what is legal, or beyond a counter, and every number of rows and every stride within a plane."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import OUTPUT_BYTES
from openmxu.arch.isa import Instruction, Opcode, OutputFormat, Pooling, Register, format_named
from openmxu.device import DeviceFault
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.extreme_cases import plain_memories
from tb.directed.instructions import load_tile, set_register
from tb.lockstep import Case
from tb.lockstep.case import HALT

__all__ = ["boundaries", "check_most_tiles", "check_numbers_of_tiles", "long_windows"]

_HOST_STRIDE_BITS = 32
_TILE_BITS = 24
_WINDOW_BITS = 16

_EXACT_TILES = 40
"""Numbers of tiles below it are taken to the last one."""

_LONG_RUNS = (((1 << 17) - 2, 1), ((1 << 18) + (1 << 13) - 2, 7))
"""Numbers of tiles of one Read_Weights, all of them taken, and of rows multiplied with each. A tile is taken every six
or seven cycles: some errors need an odd number. All but the lowest bit of the first number are 1: some errors need
two of them. The last instruction, which takes one more, has an index of many ones."""

_TAKEN_BITS = range(6, 12)
"""Also these powers of two and as many more."""

_TAKEN_MORE = 20
"""More than a queue of multiplications holds."""

_MOST_TAKEN = 6
"""Of larger numbers so many are taken."""


def boundaries(config: Config, seed: int) -> Iterator[Case]:
    """One case for each kind of boundary."""
    rng = np.random.default_rng(seed)
    setup, host, weights = plain_memories(config, rng)
    for part in (
        *(_no_tile(), _sizes_of_0(config), _long_rows_of_outputs(config), _strides_beyond_memory(config)),
        *(_numbers_of_rows(config), _strides_in_planes(config), _too_many_results(config)),
        _interrupted_rows_of_outputs(config),
    ):
        yield Case(config, (*setup, *part), host, weights, seed, separate=True)


def long_windows(config: Config, seed: int) -> Case:
    """Windows whose height or width is one or two more than a power of two, up to the longest: all positions but the
    first three lie outside the plane."""
    setup, host, weights = plain_memories(config, np.random.default_rng(seed))
    return Case(config, (*setup, *_long_windows()), host, weights, seed, separate=True)


def check_numbers_of_tiles(config: Config, options: Mapping[str, object]) -> None:
    """Read_Weights of few tiles, which are all taken before a tile of each kind and no more, and of many, of which Halt
    drops the rest. Tiles are taken a fixed number of cycles after each other, and once with one cycle more.

    Raises
    ------
    AssertionError
        A tile is missing, there are too many, or those taken of many are other ones.
    """
    # Pages that are never accessed take no memory.
    weights = np.zeros(((1 << (_TILE_BITS - 1)) + _MOST_TAKEN) * config.tile_bytes, np.uint8)
    ordinals = np.arange(1, _MOST_TAKEN + 1)
    weights[: _MOST_TAKEN * config.tile_bytes] = np.repeat(ordinals, config.tile_bytes)
    host = np.ones(max(64, config.size**2), np.uint8)
    read, tiles, multiply = map(format_named, ("read_host_memory", "read_weights", "matrixmultiply"))
    takes = [multiply(rows=1, next_tile=1, accumulator=place) for place in range(_MOST_TAKEN)]
    begin, others = read(rows=config.size), [tiles(tiles=1)]
    if config.features.has(Opcode.LOAD_WEIGHTS):
        others.append(format_named("load_weights")(unified_buffer=0))
    behind = [each for pair in zip(others, takes, strict=False) for each in pair]
    few = [*range(1, _EXACT_TILES), *((1 << bit) + _TAKEN_MORE for bit in _TAKEN_BITS)]
    many = [more + (1 << bit) for more in range(1, _MOST_TAKEN) for bit in range(3, _TILE_BITS)]
    with VerilatedDevice(config, **options) as device:
        for count, rows in itertools.product(few, (config.size, config.size + 1)):
            first = multiply(rows=rows, next_tile=1)
            program = [begin, tiles(tiles=count), first, *(count - 1) * takes[-1:], *behind, takes[0], HALT]
            assert _fault_index(device, program, host, weights) == len(program) - 2, f"{count} tiles"
            sums = device.snapshot().accumulators[: len(others)]
            assert (sums == config.size).all(), f"tiles after {count}"
        for count in many:
            fault = _fault_index(device, [begin, tiles(tiles=count), *takes, HALT], host, weights)
            assert fault is None, f"{count} tiles"
            sums = device.snapshot().accumulators[:_MOST_TAKEN]
            assert (sums == config.size * ordinals[:, np.newaxis]).all(), f"{count} tiles"


def check_most_tiles(config: Config, options: Mapping[str, object]) -> None:
    """A Read_Weights of very many tiles, which are all taken.

    Raises
    ------
    AssertionError
        A tile is missing, or there are too many.
    """
    host = np.zeros(64, np.uint8)
    for tiles, rows in _LONG_RUNS:
        weights = np.zeros(tiles * config.tile_bytes, np.uint8)
        take = format_named("matrixmultiply")(rows=rows, next_tile=1)
        program = [format_named("read_weights")(tiles=tiles), *(tiles + 1) * (take,), HALT]
        with VerilatedDevice(config, **options) as device:
            assert _fault_index(device, program, host, weights) == 1 + tiles


def _fault_index(
    device: VerilatedDevice, program: list[Instruction], host: NDArray[np.uint8], weights: NDArray[np.uint8]
) -> int | None:
    """The index of the instruction that faults, if one does."""
    try:
        device.execute(program, host, weights)
    except DeviceFault as fault:
        return fault.index
    return None


def _no_tile() -> Iterator[Instruction]:
    """No tile has been taken, neither in the first program nor since the last one."""
    multiply = format_named("matrixmultiply")
    yield from (set_register(Register.CONVOLUTION_PLANE, height=1, width=1), HALT)
    for use in (multiply(rows=1), format_named("convolve")(height=1, width=1)):
        yield from (use, HALT)
        yield from (format_named("read_weights")(tiles=1), multiply(rows=1, next_tile=1), HALT)
        yield from (use, HALT)


def _sizes_of_0(config: Config) -> Iterator[Instruction]:
    """Instructions that use a plane or a window: after power-on, and with each of its sizes 0 in turn."""
    convolve = (*load_tile(config), format_named("convolve")(height=1, width=1), HALT)
    pooling = format_named("activate")(rows=1, unified_buffer=30, from_unified_buffer=1, pooling=Pooling.MAX)
    uses = {
        Register.CONVOLUTION_PLANE: ({"height": 1, "width": 1}, convolve),
        Register.POOLING_WINDOW: ({"height": 1, "width": 1}, (pooling, HALT)),
        Register.POOLING_PLANE: ({"height": 1, "width": 1, "output_width": 1}, (pooling, HALT)),
    }
    for register, (sizes, use) in uses.items():
        yield from (*use, set_register(register, **sizes))
    for register, (sizes, use) in uses.items():
        for name in sizes:
            yield from (set_register(register, **sizes | {name: 0}), *use)
        yield from (set_register(register, **sizes), *use)


def _long_rows_of_outputs(config: Config) -> Iterator[Instruction]:
    """Windows of one row each. Of many outputs only two are of rows in the plane: the first of all and of the second
    row of outputs."""
    rows = config.unified_buffer_rows - 2
    activate = format_named("activate")(unified_buffer=2, rows=rows, pooling=Pooling.MAX, from_unified_buffer=1)
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    yield set_register(Register.POOLING_WINDOW, height=1, width=1, stride_y=1, stride_x=1)
    yield format_named("read_host_memory")(unified_buffer=0, rows=2)
    # An error in every other step shows with numbers of one parity only.
    for width in sorted({(rows - less) >> shift for less in (1, 2) for shift in range((rows - 2).bit_length())}):
        yield set_register(Register.POOLING_PLANE, height=2, width=1, output_width=width)
        yield from (activate, HALT)


def _interrupted_rows_of_outputs(config: Config) -> Iterator[Instruction]:
    """Windows of one row each, every length of a row of outputs: late in the row the matrix unit holds them up, with a
    convolution that reads one bank alone."""
    activate, multiply, convolve = map(format_named, ("activate", "matrixmultiply", "convolve"))
    first_result = config.unified_buffer_rows // 2
    beyond = 3
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    yield set_register(Register.POOLING_WINDOW, height=1, width=1, stride_y=1, stride_x=1)
    yield format_named("read_host_memory")(rows=first_result)
    for width in range(2, first_result - beyond + 1):
        rows = width + beyond
        products = min(width // 2, config.accumulator_rows)
        yield from load_tile(config)
        # The plane has one row, and goes on beyond the last output of the first row.
        yield set_register(Register.POOLING_PLANE, height=1, width=rows, output_width=width)
        yield set_register(Register.CONVOLUTION_PLANE, height=1, width=width, stride_y=1, stride_x=2)
        yield activate(unified_buffer=first_result, rows=rows, pooling=Pooling.MAX, from_unified_buffer=1)
        yield from (*3 * (multiply(rows=products),), convolve(height=1, width=products), HALT)


def _long_windows() -> Iterator[Instruction]:
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    activate = format_named("activate")(
        unified_buffer=4, rows=1, pooling=Pooling.AVERAGE, from_unified_buffer=1, output=OutputFormat.INT32
    )
    for along, across in (("height", "width"), ("width", "height")):
        yield set_register(Register.POOLING_PLANE, **{along: 3, across: 1}, output_width=1)
        for bit, more in itertools.product(range(2, _WINDOW_BITS), (1, 2)):
            window = {along: (1 << bit) + more, across: 1}
            yield set_register(Register.POOLING_WINDOW, **window, stride_y=1, stride_x=1)
            yield from (activate, HALT)


def _numbers_of_rows(config: Config) -> Iterator[Instruction]:
    """Every number of rows of every instruction, each time with other rows than the last time."""
    read, write, multiply, activate = map(
        format_named, ("read_host_memory", "write_host_memory", "matrixmultiply", "activate")
    )
    half = config.unified_buffer_rows // 2
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    for rows in range(1, half - 1):
        other = rows % 3
        yield read(rows=rows, host=other * config.size * config.host_alignment)
        yield activate(unified_buffer=half, source=other, rows=rows, from_unified_buffer=1)
        yield write(unified_buffer=half, rows=rows, host=2048)
        yield from load_tile(config)
        yield multiply(unified_buffer=other, rows=min(rows, config.accumulator_rows), accumulate=1)
        yield HALT


def _strides_in_planes(config: Config) -> Iterator[Instruction]:
    """Two outputs of a convolution and of a pooling, every number of columns and every number of rows apart: the second
    one is the last position of its plane, or just outside."""
    pairs = min(config.accumulator_rows // 2, config.unified_buffer_rows // 32)
    positions = config.unified_buffer_rows - 2 * pairs
    yield set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127)
    yield format_named("read_host_memory")(rows=positions)
    strides = itertools.product(range(1, min(positions, 256)), range(2), (False, True))
    for number, (stride, is_inside, is_vertical) in enumerate(strides):
        place = number % pairs
        if not place:
            yield from load_tile(config)
        yield from _two_outputs(stride, stride + is_inside, is_vertical, 2 * place, positions + 2 * place)
        if place == pairs - 1:
            yield HALT
    yield HALT


def _two_outputs(stride: int, length: int, is_vertical: bool, accumulator: int, row: int) -> Iterator[Instruction]:
    """A convolution and a pooling of a plane of one column, or of one row, of ``length`` positions."""
    plane, outputs = (
        {"height": size, "width": 1} if is_vertical else {"height": 1, "width": size} for size in (length, 2)
    )
    strides = {"stride_y": stride if is_vertical else 1, "stride_x": 1 if is_vertical else stride}
    yield set_register(Register.CONVOLUTION_PLANE, **plane, **strides)
    yield format_named("convolve")(**outputs, accumulator=accumulator)
    yield set_register(Register.POOLING_PLANE, **plane, output_width=outputs["width"])
    yield set_register(Register.POOLING_WINDOW, height=1, width=1, **strides)
    yield format_named("activate")(unified_buffer=row, rows=2, pooling=Pooling.MAX, from_unified_buffer=1)


def _strides_beyond_memory(config: Config) -> Iterator[Instruction]:
    """Rows whose distance from the first one has one bit, beyond those of an address."""
    transfers = [format_named(f"{name}_host_memory_alternate") for name in ("read", "write")]
    for rows_bit in range((config.unified_buffer_rows - 1).bit_length()):
        rows = 1 + (1 << rows_bit)
        for stride_bit in range(config.host_address_width - rows_bit, _HOST_STRIDE_BITS):
            yield set_register(Register.HOST_STRIDE, stride=1 << stride_bit)
            for transfer in transfers:
                yield from (transfer(rows=rows), HALT)


def _too_many_results(config: Config) -> Iterator[Instruction]:
    """Elements that are all in the unified buffer, every number of them whose results have no room there."""
    rows = config.unified_buffer_rows
    for output in (OutputFormat.WORD, OutputFormat.INT32):
        for elements in range(rows // OUTPUT_BYTES[output] + 1, rows + 1):
            yield format_named("activate")(rows=elements, from_unified_buffer=1, output=output)
            yield HALT
