"""The interpreter against the instruction set, computed independently."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.events import Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, OutputFormat, Register, format_named, register_format
from openmxu.arch.numerics import requantize
from openmxu.device import DeviceFault
from openmxu.sim.interpreter import Interpreter

SIZE = 4
CONFIG = Config(
    profile="full", size=SIZE, unified_buffer_rows=64, accumulator_rows=32, parameter_sets=4, activation_lanes=2
)
NO_WEIGHTS = np.zeros(0, np.uint8)
HALT = format_named("Halt")()


def instruction(name: str, **fields: int) -> Instruction:
    return format_named(name)(**fields)


def configure(register: Register, **fields: int) -> Instruction:
    value = register_format(register).pack(**fields)
    return instruction("Set_Configuration", register=register, value=value)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def device() -> Interpreter:
    return Interpreter(CONFIG)


def random_bytes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, np.uint8)


def parameter_rows(biases: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The eight unified buffer rows of a parameter set, assembled byte by byte."""
    rows = np.zeros((8, SIZE), np.uint8)
    for column in range(SIZE):
        bias = int(biases[column]).to_bytes(4, "little", signed=True)
        scale = np.float32(scales[column]).tobytes()
        rows[:, column] = list(bias + scale)
    return rows


def test_memories_start_as_zeros(device):
    snapshot = device.snapshot()
    assert snapshot.unified_buffer.shape == (64, SIZE)
    assert snapshot.accumulators.shape == (32, SIZE)
    assert snapshot.accumulators.dtype == np.int32
    assert not snapshot.unified_buffer.any()
    assert not snapshot.accumulators.any()


def test_a_snapshot_does_not_follow_the_device(device, rng):
    before = device.snapshot()
    host = random_bytes(rng, SIZE)
    device.execute([instruction("Read_Host_Memory", rows=1), HALT], host, NO_WEIGHTS)
    assert not before.unified_buffer.any()
    np.testing.assert_array_equal(device.snapshot().unified_buffer[0], host)


def test_host_transfers_are_contiguous(device, rng):
    host = random_bytes(rng, 20 * SIZE)
    rows = host.reshape(20, SIZE).copy()
    program = [
        instruction("Read_Host_Memory", unified_buffer=60, rows=4, host=3 * SIZE),
        instruction("Write_Host_Memory", unified_buffer=61, rows=2, host=18 * SIZE),
        HALT,
    ]
    device.execute(program, host, NO_WEIGHTS)
    np.testing.assert_array_equal(device.unified_buffer[60:], rows[3:7])
    assert not device.unified_buffer[:60].any()
    np.testing.assert_array_equal(host.reshape(20, SIZE)[:18], rows[:18])
    np.testing.assert_array_equal(host.reshape(20, SIZE)[18:], rows[4:6])


def test_alternate_reads_use_the_stride(device, rng):
    host = random_bytes(rng, 20 * SIZE)
    program = [
        configure(Register.HOST_STRIDE, stride=3 * SIZE),
        instruction("Read_Host_Memory_Alternate", rows=3, host=SIZE),
        configure(Register.HOST_STRIDE, stride=0),
        instruction("Read_Host_Memory_Alternate", unified_buffer=10, rows=5, host=2 * SIZE),
        HALT,
    ]
    device.execute(program, host, NO_WEIGHTS)
    rows = host.reshape(20, SIZE)
    np.testing.assert_array_equal(device.unified_buffer[:3], rows[[1, 4, 7]])
    np.testing.assert_array_equal(device.unified_buffer[10:15], rows[[2] * 5])


def test_the_last_of_overlapping_rows_is_kept():
    config = Config(size=8, host_data_bytes=4, unified_buffer_rows=64, accumulator_rows=32)
    device = Interpreter(config)
    host = np.arange(64, dtype=np.uint8)
    program = [
        instruction("Read_Host_Memory", rows=3),
        configure(Register.HOST_STRIDE, stride=4),
        instruction("Write_Host_Memory_Alternate", rows=3, host=32),
        HALT,
    ]
    device.execute(program, host, NO_WEIGHTS)
    expected = [*range(4), *range(8, 12), *range(16, 24)]
    assert host[32:48].tolist() == expected
    assert host[48:].tolist() == list(range(48, 64))


@pytest.mark.parametrize(("input_signed", "input_zero_point"), [(0, 0), (0, 255), (0, 77), (1, -128), (1, 127)])
@pytest.mark.parametrize(("weight_signed", "weight_zero_point"), [(0, 0), (0, 255), (1, -128), (1, 5)])
def test_multiply_is_the_sum_of_products(device, rng, input_signed, input_zero_point, weight_signed, weight_zero_point):
    host, weights = random_bytes(rng, 6 * SIZE), random_bytes(rng, SIZE * SIZE)
    program = [
        configure(Register.INPUT_FORMAT, signed=input_signed, zero_point=input_zero_point),
        configure(Register.WEIGHT_FORMAT, signed=weight_signed, zero_point=weight_zero_point),
        instruction("Read_Host_Memory", rows=6),
        instruction("Read_Weights", tiles=1),
        instruction("MatrixMultiply", next_tile=1, rows=6, accumulator=26),
        instruction("MatrixMultiply", rows=5, unified_buffer=1, accumulator=26, accumulate=1),
        HALT,
    ]
    device.execute(program, host, weights)

    def value(byte: int, signed: int, zero_point: int) -> int:
        return (byte - 256 if signed and byte > 127 else byte) - zero_point

    def product(row: int, column: int) -> int:
        return sum(
            value(int(host[row * SIZE + k]), input_signed, input_zero_point)
            * value(int(weights[k * SIZE + column]), weight_signed, weight_zero_point)
            for k in range(SIZE)
        )

    for row in range(6):
        for column in range(SIZE):
            expected = product(row, column) + (product(row + 1, column) if row < 5 else 0)
            assert device.accumulators[26 + row, column] == expected


def test_accumulators_wrap(device):
    device.accumulators[0] = [2**31 - 1, 2**31 - 5, -(2**31), 0]
    device.unified_buffer[0] = [1, 0, 0, 0]
    weights = np.zeros(SIZE * SIZE, np.uint8)
    weights[:SIZE] = [2, 2, 255, 3]
    program = [
        configure(Register.WEIGHT_FORMAT, signed=1),
        instruction("Read_Weights", tiles=1),
        instruction("MatrixMultiply", next_tile=1, accumulate=1, rows=1),
        HALT,
    ]
    device.execute(program, NO_WEIGHTS, weights)
    assert device.accumulators[0].tolist() == [-(2**31) + 1, 2**31 - 3, 2**31 - 1, 3]


def test_tiles_are_taken_in_the_order_they_were_queued_and_with_their_format(device, rng):
    weights = random_bytes(rng, 3 * SIZE * SIZE)
    device.unified_buffer[:SIZE] = np.eye(SIZE)
    multiply = [
        instruction("MatrixMultiply", next_tile=take, rows=SIZE, accumulator=SIZE * n)
        for n, take in enumerate([1, 0, 1, 1])
    ]
    program = [
        instruction("Read_Weights", tiles=2, weights=SIZE * SIZE),
        configure(Register.WEIGHT_FORMAT, zero_point=3),
        instruction("Read_Weights", tiles=1),
        configure(Register.WEIGHT_FORMAT, zero_point=9),
        *multiply,
        HALT,
    ]
    device.execute(program, NO_WEIGHTS, weights)
    tiles = weights.reshape(3, SIZE, SIZE).astype(int)
    for n, expected in enumerate([tiles[1], tiles[1], tiles[2], tiles[0] - 3]):
        np.testing.assert_array_equal(device.accumulators[SIZE * n : SIZE * (n + 1)], expected)


def test_a_parameter_set_occupies_eight_rows(device, rng):
    biases = rng.integers(-(2**31), 2**31, (2, SIZE)).astype(np.int32)
    scales = np.array([[1.5, -0.25, 1e-20, 3e30], [0.0, np.inf, 7.0, -1e-40]], np.float32)
    device.unified_buffer[5:21] = np.concatenate([parameter_rows(*pair) for pair in zip(biases, scales, strict=True)])
    program = [configure(Register.LOAD_PARAMETERS, unified_buffer=5, first=2, count=2), HALT]
    device.execute(program, NO_WEIGHTS, NO_WEIGHTS)
    np.testing.assert_array_equal(device.biases[2:], biases)
    np.testing.assert_array_equal(device.scales[2:], scales)
    assert not device.biases[:2].any()


def activate(device: Interpreter, sums: np.ndarray, biases: list[int], scales: list[float], **output_format: int):
    """Run Activate over ``sums`` with parameter set 1; returns the unified buffer rows that it writes."""
    device.accumulators[4 : 4 + len(sums)] = sums
    device.unified_buffer[:8] = parameter_rows(np.array(biases), np.array(scales))
    program = [
        configure(Register.LOAD_PARAMETERS, first=1, count=1),
        configure(Register.OUTPUT_FORMAT, **output_format),
        instruction("Activate", unified_buffer=30, source=4, rows=len(sums), parameters=1),
        HALT,
    ]
    device.execute(program, NO_WEIGHTS, NO_WEIGHTS)
    return device.unified_buffer[30 : 30 + len(sums)]


def test_activate_requantizes(device, rng):
    sums = rng.integers(-50000, 50000, (9, SIZE)).astype(np.int32)
    biases, scales = [0, 1000, -70000, 12345], [0.001, 0.002, -0.003, 0.5]
    got = activate(device, sums, biases, scales, zero_point=-3, minimum=-128, maximum=127)
    expected = requantize(sums + np.int32(biases), np.float32(scales), -3, -128, 127)
    np.testing.assert_array_equal(got.view(np.int8), expected)
    assert len(np.unique(got)) > 8


def test_activate_rounds_half_to_even_and_wraps_the_biased_sum(device):
    sums = np.array([[1, 3, 2**31 - 1, -(2**31)]], np.int32)
    got = activate(device, sums, [0, 0, 1, -1], [0.5, 0.5, 1e-8, 1e-8], zero_point=100, maximum=255)
    assert got[0].tolist() == [100, 102, 100 - 21, 100 + 21]


def test_activate_writes_the_low_byte_of_a_wide_result(device):
    sums = np.array([[0x1234, -2, 5000, 300]], np.int32)
    got = activate(device, sums, [0] * SIZE, [1.0] * SIZE, zero_point=0, minimum=-1000, maximum=4700)
    assert got[0].tolist() == [4660 & 255, 254, 4700 & 255, 300 & 255]


def test_int32_output_is_four_rows_of_bytes(device, rng):
    sums = rng.integers(-(2**31), 2**31, (3, SIZE)).astype(np.int32)
    biases = np.array([1, -1, 2**31 - 1, -(2**31)], np.int32)
    device.accumulators[29:32] = sums
    device.unified_buffer[:8] = parameter_rows(biases, np.zeros(SIZE))
    program = [
        configure(Register.LOAD_PARAMETERS, first=3, count=1),
        instruction("Activate", unified_buffer=52, source=29, rows=3, parameters=3, output=OutputFormat.INT32),
        HALT,
    ]
    device.execute(program, NO_WEIGHTS, NO_WEIGHTS)
    for row in range(3):
        for column in range(SIZE):
            expected = (int(sums[row, column]) + int(biases[column])) % 2**32
            got = bytes(device.unified_buffer[52 + 4 * row : 56 + 4 * row, column])
            assert int.from_bytes(got, "little") == expected


def test_events_carry_the_index_within_their_program(device):
    program = [
        instruction("Nop"),
        instruction("Debug_Tag", tag=7),
        HALT,
        instruction("Interrupt_Host", tag=2**32 - 1),
        instruction("Synchronize", units=31),
        instruction("Host_Synchronize", tag=9),
        HALT,
    ]
    assert device.execute(program, NO_WEIGHTS, NO_WEIGHTS) == [
        Event(EventKind.DEBUG_TAG, 1, tag=7),
        Event(EventKind.HALT, 2),
        Event(EventKind.INTERRUPT, 0, tag=2**32 - 1),
        Event(EventKind.HOST_SYNCHRONIZE, 2, tag=9),
        Event(EventKind.HALT, 3),
    ]
    assert device.counters == {}


def test_a_fault_stops_the_program_and_names_the_instruction(device, rng):
    host = random_bytes(rng, 4 * SIZE)
    program = [
        HALT,
        instruction("Debug_Tag", tag=1),
        instruction("Read_Host_Memory", rows=2),
        instruction("Read_Host_Memory", rows=5),
        instruction("Read_Host_Memory", unified_buffer=20, rows=1),
        HALT,
    ]
    with pytest.raises(DeviceFault, match=r"instruction 2 \(read_host_memory .*rows=5.*\): HOST_WINDOW: ") as caught:
        device.execute(program, host, NO_WEIGHTS)
    fault = caught.value
    assert (fault.code, fault.index, fault.instruction) == (FaultCode.HOST_WINDOW, 2, program[3])
    assert fault.events == [
        Event(EventKind.HALT, 0),
        Event(EventKind.DEBUG_TAG, 0, tag=1),
        Event(EventKind.FAULT, 2, fault=FaultCode.HOST_WINDOW),
    ]
    np.testing.assert_array_equal(device.unified_buffer[:2], host.reshape(4, SIZE)[:2])
    assert not device.unified_buffer[2:].any()


def ends_without_tile(device: Interpreter, **multiply: int) -> bool:
    with pytest.raises(DeviceFault) as caught:
        device.execute([instruction("MatrixMultiply", rows=1, **multiply), HALT], NO_WEIGHTS, NO_WEIGHTS)
    return caught.value.code is FaultCode.NO_TILE and caught.value.index == 0


def use_weights(device: Interpreter, *then: Instruction) -> None:
    """Run a program that leaves a tile in the array, a queued tile, and a changed configuration register."""
    program = [
        configure(Register.INPUT_FORMAT, zero_point=5),
        instruction("Read_Weights", tiles=2),
        instruction("MatrixMultiply", next_tile=1, rows=1, accumulator=1),
        *then,
        HALT,
    ]
    device.execute(program, NO_WEIGHTS, np.ones(2 * SIZE * SIZE, np.uint8))


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_tile_of_the_unified_buffer_keeps_its_contents_and_its_format(device, rng, transposed):
    """What is written to its rows, or to WEIGHT_FORMAT, behind Load_Weights does not matter."""
    host = random_bytes(rng, 3 * SIZE * SIZE)
    inputs, rows = host[: SIZE * SIZE].reshape(SIZE, SIZE), host[SIZE * SIZE : 2 * SIZE * SIZE].reshape(SIZE, SIZE)
    formats = [register_format(Register.WEIGHT_FORMAT).pack(zero_point=zero_point, signed=1) for zero_point in (-7, 5)]
    set_format = [instruction("Set_Configuration", register=Register.WEIGHT_FORMAT, value=value) for value in formats]
    program = [
        instruction("Read_Host_Memory", rows=2 * SIZE),
        set_format[0],
        instruction("Load_Weights", unified_buffer=SIZE, transposed=transposed),
        set_format[1],
        instruction("Read_Host_Memory", unified_buffer=SIZE, rows=SIZE, host=2 * SIZE * SIZE),
        instruction("MatrixMultiply", rows=SIZE, next_tile=1),
    ]
    device.execute([*program, HALT], host, NO_WEIGHTS)
    weights = rows.view(np.int8).astype(np.int32) + 7
    expected = inputs.astype(np.int32) @ (weights.T if transposed else weights)
    np.testing.assert_array_equal(device.snapshot().accumulators[:SIZE], expected)


@pytest.mark.parametrize("next_tile", [0, 1])
def test_weights_do_not_outlive_halt(device, next_tile):
    use_weights(device)
    assert ends_without_tile(device, next_tile=next_tile)


@pytest.mark.parametrize("next_tile", [0, 1])
def test_weights_do_not_outlive_a_fault_but_registers_do(device, next_tile):
    with pytest.raises(DeviceFault):
        use_weights(device, Instruction(0xFF))
    assert device.accumulators[1].tolist() == [-5 * SIZE] * SIZE
    assert ends_without_tile(device, next_tile=next_tile)
    program = [instruction("Read_Weights", tiles=1), instruction("MatrixMultiply", next_tile=1, rows=1), HALT]
    device.execute(program, NO_WEIGHTS, np.full(SIZE * SIZE, 2, np.uint8))
    assert device.accumulators[0].tolist() == [-10 * SIZE] * SIZE


def test_reset_clears_registers_and_keeps_memories(device):
    use_weights(device)
    device.reset()
    assert device.accumulators[1].tolist() == [-5 * SIZE] * SIZE
    program = [instruction("Read_Weights", tiles=1), instruction("MatrixMultiply", next_tile=1, rows=1), HALT]
    device.execute(program, NO_WEIGHTS, np.full(SIZE * SIZE, 2, np.uint8))
    assert not device.accumulators[0].any()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ([], "must end with Halt; this one is empty"),
        ([HALT, instruction("Nop")], "must end with Halt; instruction 1, the last one, is Nop"),
        ([Instruction(0xEE)], "must end with Halt; instruction 0, the last one, is opcode 0xee"),
    ],
)
def test_a_program_must_end_with_halt(device, program, message):
    with pytest.raises(ValueError, match=message):
        device.execute(program, NO_WEIGHTS, NO_WEIGHTS)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (b"abc", "a uint8 array, not bytes"),
        (np.zeros(4, np.int8), "not int8 of shape"),
        (np.zeros((2, 2), np.uint8), r"not uint8 of shape \(2, 2\)"),
        (np.zeros(8, np.uint8)[::2], "not uint8 of shape .*, not contiguous"),
    ],
)
@pytest.mark.parametrize("which", ["host_memory", "weight_memory"])
def test_memories_must_be_byte_vectors(device, which, memory, message):
    memories = {"host_memory": NO_WEIGHTS, "weight_memory": NO_WEIGHTS, which: memory}
    with pytest.raises(ValueError, match=f"{which} must be .*{message}"):
        device.execute([HALT], **memories)


def test_host_memory_must_be_writeable_and_weight_memory_need_not(device):
    frozen = np.zeros(8, np.uint8)
    frozen.flags.writeable = False
    assert device.execute([HALT], np.zeros(0, np.uint8), frozen) == [Event(EventKind.HALT, 0)]
    with pytest.raises(ValueError, match="host_memory must be writeable; pass a copy"):
        device.execute([HALT], frozen, NO_WEIGHTS)


def test_repeated_programs_follow_memories_and_registers(device, rng):
    """A program that is executed again computes what the memories and registers that it finds then say."""
    read = [
        instruction("Read_Host_Memory", rows=2),
        instruction("Read_Weights", tiles=1),
        instruction("MatrixMultiply", rows=2, next_tile=1),
        HALT,
    ]
    for zero_point in (3, 3, 5, 5, 3):
        host, weights = random_bytes(rng, 2 * SIZE), random_bytes(rng, SIZE * SIZE)
        device.execute([configure(Register.INPUT_FORMAT, zero_point=zero_point), HALT], host, NO_WEIGHTS)
        device.execute(read, host, weights)
        inputs = host.reshape(2, SIZE).astype(np.int64) - zero_point
        expected = inputs @ weights.reshape(SIZE, SIZE).astype(np.int64)
        np.testing.assert_array_equal(device.accumulators[:2], expected)


def test_a_repeated_program_sets_its_registers_again(device, rng):
    host, weights = random_bytes(rng, SIZE), random_bytes(rng, SIZE * SIZE)
    sets = [configure(Register.INPUT_FORMAT, zero_point=9), HALT]
    uses = [
        *(instruction("Read_Host_Memory", rows=1), instruction("Read_Weights", tiles=1)),
        *(instruction("MatrixMultiply", rows=1, next_tile=1), HALT),
    ]
    expected = (host.astype(np.int64) - 9) @ weights.reshape(SIZE, SIZE).astype(np.int64)
    for _ in range(3):
        device.execute(sets, host, NO_WEIGHTS)
        device.execute(uses, host, weights)
        np.testing.assert_array_equal(device.accumulators[0], expected)
        device.reset()


def test_a_fault_in_a_smaller_memory_is_found_again(device, rng):
    program = [instruction("Read_Host_Memory", rows=2), HALT]
    device.execute(program, random_bytes(rng, 2 * SIZE), NO_WEIGHTS)
    with pytest.raises(DeviceFault):
        device.execute(program, random_bytes(rng, SIZE), NO_WEIGHTS)


def test_programs_that_begin_alike_are_told_apart(device, rng):
    host = random_bytes(rng, 2 * SIZE)
    read = instruction("Read_Host_Memory", rows=1)
    for first, target in ((0, 9), (SIZE, 9), (0, 7), (0, 9)):
        device.execute(
            [read, instruction("Read_Host_Memory", rows=1, host=first, unified_buffer=target), HALT], host, NO_WEIGHTS
        )
        np.testing.assert_array_equal(device.unified_buffer[target], host[first : first + SIZE])
        device.unified_buffer[:] = 0
