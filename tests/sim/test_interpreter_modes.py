"""Convolution, the modes of Activate and 16-bit operands on the interpreter, against loops over single elements."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction, Operand, OutputFormat, Pooling, Register, format_named, register_format
from openmxu.sim.interpreter import Interpreter
from tests.sim.naive import Pool, byte, element, limited, product, read_result, wrap

SIZE = 4
CONFIG = Config(size=SIZE, unified_buffer_rows=256, accumulator_rows=64, parameter_sets=4, activation_lanes=2)
NOTHING = np.zeros(0, np.uint8)
HALT = format_named("Halt")()


def instruction(name: str, **fields: int) -> Instruction:
    return format_named(name)(**fields)


def configure(register: Register, **fields: int) -> Instruction:
    return instruction("Set_Configuration", register=register, value=register_format(register).pack(**fields))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.fixture
def device(rng) -> Interpreter:
    """An interpreter with random contents in its memories."""
    device = Interpreter(CONFIG)
    device.unified_buffer[:] = rng.integers(0, 256, device.unified_buffer.shape, np.uint8)
    device.accumulators[:] = rng.integers(-(2**31), 2**31, device.accumulators.shape, np.int32)
    for table in device.tables:
        table[:] = rng.permutation(256)
    return device


def run(device: Interpreter, *program: Instruction, weights: np.ndarray = NOTHING) -> None:
    device.execute([*program, HALT], np.zeros(0, np.uint8), weights)


def tiles_of(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(-1, SIZE, SIZE)


# --- MatrixMultiply ---


@pytest.mark.parametrize("rows", [1, 5])
def test_wide_inputs_are_int16_without_a_zero_point(device, rng, rows):
    weights = rng.integers(0, 256, SIZE * SIZE, np.uint8)
    before = device.accumulators.copy()
    run(
        device,
        configure(Register.INPUT_FORMAT, zero_point=99),
        configure(Register.WEIGHT_FORMAT, zero_point=-7, signed=1),
        instruction("Read_Weights", tiles=1),
        instruction(
            "MatrixMultiply",
            next_tile=1,
            wide_input=1,
            accumulate=1,
            rows=rows,
            unified_buffer=256 - 2 * rows,
            accumulator=3,
        ),
        weights=weights,
    )
    tile = tiles_of(weights.view(np.int8).astype(int) + 7)[0]
    inputs = device.unified_buffer[256 - 2 * rows :]
    for row in range(rows):
        values = [element(inputs, row, k, signed=True, wide=True, zero_point=0) for k in range(SIZE)]
        for column in range(SIZE):
            expected = wrap(int(before[3 + row, column]) + product(values, tile, column))
            assert device.accumulators[3 + row, column] == expected
    assert np.array_equal(device.accumulators[:3], before[:3])
    assert np.array_equal(device.accumulators[3 + rows :], before[3 + rows :])


@pytest.mark.parametrize("wide_input", [0, 1])
@pytest.mark.parametrize("split", [False, True])
def test_wide_weights_take_a_low_and_a_high_tile(device, rng, wide_input, split):
    weights = rng.integers(0, 256, 4 * SIZE * SIZE, np.uint8)
    tile_bytes = SIZE * SIZE
    if split:  # from two Read_Weights, both of which begin with low bytes
        read = [instruction("Read_Weights", tiles=1), instruction("Read_Weights", tiles=1, weights=tile_bytes)]
    else:
        read = [instruction("Read_Weights", tiles=2)]
    run(
        device,
        configure(Register.INPUT_FORMAT, zero_point=-5, signed=1),
        configure(Register.WEIGHT_FORMAT, wide=1),
        *read,
        instruction("MatrixMultiply", next_tile=1, wide_weights=1, wide_input=wide_input, rows=6),
        instruction("MatrixMultiply", rows=6, accumulator=6),
        weights=weights,
    )
    low = tiles_of(weights)[0].astype(int)
    high = tiles_of(weights if split else weights.view(np.int8))[1].astype(int)
    for row in range(6):
        plain = [byte(int(x), signed=True, zero_point=-5) for x in device.unified_buffer[row]]
        wide = [element(device.unified_buffer, row, k, signed=True, wide=True, zero_point=0) for k in range(SIZE)]
        for column in range(SIZE):
            expected = product(wide if wide_input else plain, low + 256 * high, column)
            assert device.accumulators[row, column] == wrap(expected)
            # The tile of the high bytes remains in the array.
            assert device.accumulators[6 + row, column] == product(plain, high, column)


def test_tiles_of_one_read_alternate_between_low_and_high_bytes(device):
    device.unified_buffer[:SIZE] = np.eye(SIZE)
    take = [instruction("MatrixMultiply", next_tile=1, rows=1, accumulator=n) for n in range(5)]
    run(
        device,
        configure(Register.WEIGHT_FORMAT, wide=1),
        instruction("Read_Weights", tiles=3),
        instruction("Read_Weights", tiles=2),
        *take,
        weights=np.full(3 * SIZE * SIZE, 200, np.uint8),
    )
    assert device.accumulators[:5, 0].tolist() == [200, -56, 200, 200, -56]


def test_wide_sums_wrap(device):
    device.unified_buffer[:2] = [[0] * SIZE, [128] * SIZE]  # -2**15
    weights = np.concatenate([np.zeros(SIZE * SIZE, np.uint8), np.full(SIZE * SIZE, 128, np.uint8)])
    multiply = {"next_tile": 1, "wide_weights": 1, "wide_input": 1, "rows": 1}
    program = [configure(Register.WEIGHT_FORMAT, wide=1), instruction("Read_Weights", tiles=2)]
    run(device, *program, instruction("MatrixMultiply", **multiply), weights=weights)
    assert device.accumulators[0].tolist() == [wrap(SIZE * 2**30)] * SIZE == [0] * SIZE
    weights[SIZE * SIZE : 2 * SIZE * SIZE - SIZE] = 0  # one product is left
    run(device, *program, instruction("MatrixMultiply", **multiply), weights=weights)
    assert device.accumulators[0].tolist() == [2**30] * SIZE
    run(device, *program, instruction("MatrixMultiply", **multiply, accumulate=1), weights=weights)
    assert device.accumulators[0].tolist() == [-(2**31)] * SIZE


# --- Convolve ---


def convolved(device: Interpreter, plane: dict[str, int], fields: dict[str, int], tile: np.ndarray) -> np.ndarray:
    """The sums of a Convolve, element by element."""
    wide = bool(fields.get("wide_input"))
    rows = device.unified_buffer[fields["unified_buffer"] :]
    sums = []
    for y in range(fields["height"]):
        for x in range(fields["width"]):
            row, column = y * plane["stride_y"] + fields["dy"], x * plane["stride_x"] + fields["dx"]
            values = [0] * SIZE
            if 0 <= row < plane["height"] and 0 <= column < plane["width"]:
                place = row * plane["width"] + column
                zero_point = 0 if wide else 3
                values = [element(rows, place, k, signed=wide, wide=wide, zero_point=zero_point) for k in range(SIZE)]
            sums.append([product(values, tile, n) for n in range(SIZE)])
    return np.array(sums)


@pytest.mark.parametrize("wide_input", [0, 1])
@pytest.mark.parametrize(
    ("plane", "outputs", "offset"),
    [
        ((4, 5, 1, 1), (4, 5), (0, 0)),
        ((4, 5, 1, 1), (4, 5), (-1, -1)),
        ((4, 5, 1, 1), (4, 5), (1, 1)),
        ((5, 4, 2, 3), (3, 2), (-2, 1)),
        ((3, 3, 0, 0), (2, 4), (1, 2)),
        ((3, 3, 0, 1), (3, 3), (-1, 0)),
        ((3, 3, 255, 255), (2, 2), (-254, -254)),
        ((2, 2, 1, 1), (3, 4), (-32768, 32767)),
        ((1, 1, 1, 1), (5, 7), (-2, -3)),
        ((1, 6, 1, 2), (1, 4), (0, -1)),
    ],
)
def test_convolve_reads_the_plane_and_zero_outside(device, rng, plane, outputs, offset, wide_input):
    plane = dict(zip(("height", "width", "stride_y", "stride_x"), plane, strict=True))
    count = plane["height"] * plane["width"] << wide_input
    fields = {
        "unified_buffer": 256 - count,
        "accumulator": 64 - outputs[0] * outputs[1],
        "height": outputs[0],
        "width": outputs[1],
        "dy": offset[0],
        "dx": offset[1],
        "wide_input": wide_input,
    }
    weights = rng.integers(0, 256, SIZE * SIZE, np.uint8)
    before = device.accumulators.copy()
    run(
        device,
        configure(Register.INPUT_FORMAT, zero_point=3),
        configure(Register.CONVOLUTION_PLANE, **plane),
        instruction("Read_Weights", tiles=1),
        instruction("Convolve", next_tile=1, **fields),
        weights=weights,
    )
    expected = convolved(device, plane, fields, tiles_of(weights)[0])
    first = fields["accumulator"]
    assert np.array_equal(device.accumulators[first:], expected)
    assert np.array_equal(device.accumulators[:first], before[:first])


def test_convolve_accumulates_over_kernel_positions_with_wide_weights(device, rng):
    plane = {"height": 4, "width": 4, "stride_y": 1, "stride_x": 1}
    weights = rng.integers(0, 256, 3 * 2 * SIZE * SIZE, np.uint8)
    positions = [(-1, 0), (0, -1), (1, 1)]
    kernel = [
        {"unified_buffer": 7, "height": 4, "width": 3, "dy": dy, "dx": dx, "accumulate": number > 0}
        for number, (dy, dx) in enumerate(positions)
    ]
    run(
        device,
        configure(Register.INPUT_FORMAT, zero_point=3),
        configure(Register.WEIGHT_FORMAT, wide=1),
        configure(Register.CONVOLUTION_PLANE, **plane),
        instruction("Read_Weights", tiles=6),
        *[instruction("Convolve", next_tile=1, wide_weights=1, **fields) for fields in kernel],
        weights=weights,
    )
    low, high = tiles_of(weights)[0::2].astype(int), tiles_of(weights.view(np.int8))[1::2].astype(int)
    expected = sum(convolved(device, plane, fields, low[n] + 256 * high[n]) for n, fields in enumerate(kernel))
    assert np.array_equal(device.accumulators[:12], expected)


# --- Activate ---

COUNTS = {OutputFormat.BYTE: 1, OutputFormat.WORD: 2, OutputFormat.INT32: 4}
SET = 2
BIASES = (0, 100, -(2**19), 12345)
EXPONENTS = (-6, -9, -12, -14)
OPERAND_EXPONENT = -3
FORMATS = [
    pytest.param({"wide": 0, "signed": 0, "zero_point": 131}, id="uint8"),
    pytest.param({"wide": 0, "signed": 1, "zero_point": -4}, id="int8"),
    pytest.param({"wide": 1, "signed": 0, "zero_point": 65535}, id="uint16"),
    pytest.param({"wide": 1, "signed": 1, "zero_point": 1000}, id="int16"),
]
POOLS = [
    pytest.param(None, id="rows"),
    pytest.param(Pool(4, 3, window=(2, 2), stride=(1, 1), pad=(0, 0), output_width=2, maximum=True), id="max"),
    pytest.param(Pool(4, 3, window=(2, 3), stride=(2, 1), pad=(1, 2), output_width=5, maximum=True), id="padded max"),
    pytest.param(Pool(3, 4, window=(3, 1), stride=(0, 3), pad=(2, 0), output_width=3, maximum=False), id="columns"),
    pytest.param(Pool(3, 4, window=(9, 9), stride=(0, 0), pad=(3, 1), output_width=1, maximum=False), id="global sum"),
    pytest.param(Pool(2, 2, window=(1, 2), stride=(2, 2), pad=(3, 4), output_width=3, maximum=False), id="mostly out"),
    pytest.param(Pool(1, 1, window=(1, 1), stride=(255, 255), pad=(255, 255), output_width=2, maximum=True), id="far"),
]


@pytest.fixture
def parameters(device) -> Interpreter:
    """A device with BIASES in parameter set 2, and powers of two as scales, which keep sums below 2**24 exact."""
    device.biases[SET] = BIASES
    device.scales[SET] = np.exp2(np.array(EXPONENTS))
    # Sums must be small enough to stay exact when a scaled operand is added.
    device.accumulators[:] >>= 9
    return device


def element_format(register: Register, format: dict[str, int] | None) -> list[Instruction]:
    return [] if format is None else [configure(register, **format)]


def pooling_registers(pool: Pool | None) -> list[Instruction]:
    if pool is None:
        return []
    window = {
        "height": pool.window[0],
        "width": pool.window[1],
        "stride_y": pool.stride[0],
        "stride_x": pool.stride[1],
        "pad_top": pool.pad[0],
        "pad_left": pool.pad[1],
    }
    plane = {"height": pool.height, "width": pool.width, "output_width": pool.output_width}
    return [configure(Register.POOLING_WINDOW, **window), configure(Register.POOLING_PLANE, **plane)]


def activate(
    device: Interpreter,
    rows: int,
    *,
    pool: Pool | None = None,
    source_format: dict[str, int] | None = None,
    operand: Operand = Operand.NONE,
    operand_format: dict[str, int] | None = None,
    output: OutputFormat = OutputFormat.BYTE,
    table: int | None = None,
    limits: tuple[int, int, int] = (7, -100, 90),
) -> None:
    """Run an Activate; compare every byte that it writes, and check that it changes nothing else.

    The source is in the accumulators from row 20 on, or in the unified buffer from row 100 on; the operand from row 180
    on. Results are written from row 10 on.
    """
    before = device.snapshot()
    sums, bytes_ = before.accumulators[20:], before.unified_buffer[100:]
    fields = {"source": 100 if source_format else 20, "pooling": Pooling.NONE}
    if pool is not None:
        fields["pooling"] = Pooling.MAX if pool.maximum else Pooling.AVERAGE
    limit_names = ("zero_point", "minimum", "maximum")
    run(
        device,
        configure(Register.OUTPUT_FORMAT, **dict(zip(limit_names, limits, strict=True))),
        configure(Register.OPERAND_ADDRESS, unified_buffer=180),
        configure(Register.OPERAND_SCALE, scale=int(np.float32(2.0**OPERAND_EXPONENT).view(np.uint32))),
        *element_format(Register.SOURCE_FORMAT, source_format),
        *element_format(Register.OPERAND_FORMAT, operand_format),
        *pooling_registers(pool),
        instruction(
            "Activate",
            **fields,
            rows=rows,
            from_unified_buffer=source_format is not None,
            unified_buffer=10,
            parameters=SET,
            operand=operand,
            output=output,
            table=table is not None,
            table_number=table or 0,
        ),
    )

    def source(row: int, column: int) -> int:
        return element(bytes_, row, column, **source_format) if source_format else int(sums[row, column])

    def result(row: int, column: int) -> int:
        total = wrap((pool(source, row, column) if pool else source(row, column)) + BIASES[column])
        second = element(before.unified_buffer[180:], row, column, **operand_format) if operand_format else 0
        if operand is Operand.MULTIPLY:
            total = wrap(total * second)
        if output is OutputFormat.INT32:
            return total
        exact = total * Fraction(2) ** EXPONENTS[column]
        if operand is Operand.ADD:
            exact += second * Fraction(2) ** OPERAND_EXPONENT
        value = limited(exact, *limits)
        return value if table is None else int(device.tables[table][value % 256])

    count = COUNTS[output]
    written = device.unified_buffer[10 : 10 + count * rows]
    for row in range(rows):
        for column in range(SIZE):
            expected = result(row, column) % 256**count
            assert read_result(written, row, column, count) == expected.to_bytes(count, "little"), (row, column)
    untouched = np.ones(256, bool)
    untouched[10 : 10 + count * rows] = False
    assert np.array_equal(device.unified_buffer[untouched], before.unified_buffer[untouched])
    assert np.array_equal(device.accumulators, before.accumulators)


@pytest.mark.parametrize("output", OutputFormat)
@pytest.mark.parametrize("pool", POOLS)
def test_pooling_of_accumulators(parameters, pool, output):
    activate(parameters, 7, pool=pool, output=output, limits=(7, -3000, 9000))


@pytest.mark.parametrize("output", OutputFormat)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("format", FORMATS)
def test_pooling_of_the_unified_buffer(parameters, pool, format, output):
    activate(parameters, 7, pool=pool, source_format=format, output=output, limits=(-1, -32768, 32767))


def test_sums_of_windows_wrap(parameters):
    parameters.accumulators[20:22] = [[2**31 - 1, -(2**31), 2**30, 5]] * 2
    pool = Pool(1, 2, window=(1, 2), stride=(1, 1), pad=(0, 0), output_width=1, maximum=False)
    activate(parameters, 1, pool=pool, output=OutputFormat.INT32)
    sums = [int.from_bytes(read_result(parameters.unified_buffer[10:], 0, n, 4), "little") for n in range(SIZE)]
    assert sums == [(2**32 - 2), 100, 2**31 - 2**19, 12355]


def test_a_window_far_larger_than_its_plane_takes_no_longer_than_the_plane(parameters):
    """The largest window has nearly 2**32 positions, too many to visit one by one."""
    parameters.unified_buffer[100:112] = 3
    program = [
        configure(Register.POOLING_WINDOW, height=65535, width=65535),
        configure(Register.POOLING_PLANE, height=3, width=4, output_width=1),
        instruction(
            "Activate",
            source=100,
            unified_buffer=10,
            rows=2,
            from_unified_buffer=1,
            pooling=Pooling.AVERAGE,
            output=OutputFormat.WORD,
        ),
    ]
    parameters.scales[0] = 1
    run(parameters, configure(Register.OUTPUT_FORMAT, maximum=1000), *program)
    assert parameters.unified_buffer[10:14, 0].tolist() == [36, 0, 36, 0]


@pytest.mark.parametrize("pool", [POOLS[0], POOLS[2]])
@pytest.mark.parametrize("source_format", [None, *FORMATS])
@pytest.mark.parametrize("operand_format", FORMATS)
@pytest.mark.parametrize("output", [OutputFormat.BYTE, OutputFormat.WORD])
def test_an_operand_is_added_with_its_own_scale(parameters, pool, source_format, operand_format, output):
    activate(
        parameters,
        6,
        pool=pool,
        source_format=source_format,
        operand=Operand.ADD,
        operand_format=operand_format,
        output=output,
        limits=(11, -9000, 9000) if output is OutputFormat.WORD else (11, 0, 255),
    )


@pytest.mark.parametrize("pool", [POOLS[0], POOLS[2]])
@pytest.mark.parametrize("source_format", [None, *FORMATS])
@pytest.mark.parametrize("operand_format", FORMATS)
def test_an_operand_multiplies_the_sum_which_wraps(parameters, pool, source_format, operand_format):
    activate(
        parameters,
        6,
        pool=pool,
        source_format=source_format,
        operand=Operand.MULTIPLY,
        operand_format=operand_format,
        output=OutputFormat.INT32,
    )


@pytest.mark.parametrize("source_format", [None, FORMATS[1]])
def test_a_product_is_scaled(parameters, source_format):
    parameters.biases[SET] = BIASES
    parameters.accumulators[20:] %= 2**15
    parameters.unified_buffer[180:] %= 8
    activate(
        parameters,
        9,
        source_format=source_format,
        operand=Operand.MULTIPLY,
        operand_format={"wide": 0, "signed": 0, "zero_point": 2},
        output=OutputFormat.WORD,
        limits=(0, -32768, 32767),
    )


@pytest.mark.parametrize("limits", [(7, -128, 127), (100, 0, 255), (0, -1000, 4700)])
@pytest.mark.parametrize(("operand", "table"), [(Operand.NONE, 0), (Operand.ADD, 0), (Operand.NONE, 7)])
def test_the_low_byte_looks_up_a_table(parameters, operand, table, limits):
    operand_format = FORMATS[0].values[0] if operand else None
    activate(parameters, 8, table=table, operand=operand, operand_format=operand_format, limits=limits)


def test_the_upper_limit_wins(parameters):
    activate(parameters, 4, limits=(0, 50, -50))


@pytest.mark.parametrize("size", [2, 4, 16, 256])
def test_the_table_is_loaded_row_by_row(rng, size):
    device = Interpreter(Config(size=size, unified_buffer_rows=256, accumulator_rows=16, activation_lanes=1))
    assert not device.tables.any()
    rows = 256 // size
    device.unified_buffer[:] = rng.integers(0, 256, device.unified_buffer.shape, np.uint8)
    run(device, configure(Register.LOAD_TABLE, unified_buffer=256 - rows, number=5))
    for number in range(256):
        assert device.tables[5, number] == device.unified_buffer[256 - rows + number // size, number % size]
    assert not np.delete(device.tables, 5, axis=0).any()


def test_a_reset_keeps_the_tables(parameters):
    before = parameters.tables.copy()
    parameters.reset()
    assert np.array_equal(parameters.tables, before)


def test_results_of_one_activate_are_the_source_of_the_next(parameters):
    """A chain through the unified buffer: int32 sums to 16-bit words, then words to bytes."""
    parameters.scales[0] = 2.0**-10
    parameters.scales[1] = 2.0**-8
    sums = parameters.accumulators[:5].astype(int)
    run(
        parameters,
        configure(Register.OUTPUT_FORMAT, minimum=-32768, maximum=32767),
        instruction("Activate", rows=5, unified_buffer=50, output=OutputFormat.WORD),
        configure(Register.OUTPUT_FORMAT, minimum=-128, maximum=127, zero_point=3),
        configure(Register.SOURCE_FORMAT, wide=1, signed=1, zero_point=20),
        instruction("Activate", rows=5, source=50, from_unified_buffer=1, unified_buffer=45, parameters=1),
    )
    for row in range(5):
        for column in range(SIZE):
            word = limited(Fraction(int(sums[row, column]), 2**10), 0, -32768, 32767)
            expected = limited(Fraction(word - 20, 2**8), 3, -128, 127)
            assert parameters.unified_buffer[45 + row, column] == expected % 256
