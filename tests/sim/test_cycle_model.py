"""The cycle model predicts the cycles of the RTL."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import openmxu
from openmxu.arch import Config
from openmxu.arch.events import Counter
from openmxu.arch.isa import Instruction, format_named
from openmxu.assembler import assemble
from openmxu.compiler import compile_network, conv_input, conv_network, gemm, gemm_input
from openmxu.sim.cycle_model import predict
from openmxu.sim.verilated import VerilatedDevice
from scripts import cycle_model
from tb.directed.cycle_counts import expected, name_of
from tb.directed.directed_cases import DIRECTED
from tb.directed.timed_programs import accumulator_pairs, layers, setup, unified_buffer_pairs
from tb.lockstep.campaign import VERILATED, configurations
from tb.lockstep.programs.generator import generate

LIMIT = 0.001
"""Maximum relative error of a prediction."""

SLACK = 3
"""Additional error in cycles. A few rare events are not modelled, such as an operand's row whose bank is busy just
in the cycle in which the row is needed. The longest of them takes three cycles, and programs of a hundred cycles have
at most one."""

CONVOLUTION_LIMIT = 0.005
"""The same for convolutions of a few thousand cycles, in which it counts that the model does not know all the results
that take cycles from a long host transfer."""

HALT = format_named("halt")()


def assert_close(predicted: int, measured: int, limit: float = LIMIT) -> None:
    assert abs(predicted - measured) <= limit * measured + SLACK, f"{predicted} predicted, {measured} measured"


@pytest.mark.parametrize("config", VERILATED, ids=name_of)
def test_recorded_layers(config: Config) -> None:
    """The prediction is exact, so every latency is right. A change of the hardware's timing must change both.

    The exceptions are the end of a program in which the activation unit reads a row in each cycle, see
    :func:`test_recorded_pairs`, and rows of two bytes, of which several come in one beat.
    """
    slack = 2 if config.size == 2 else int(config.column_groups == 1)
    for name, program in layers(config):
        recorded = expected(config)["layers"][name]
        found = predict(program, config)
        stalls = (found.weight_stall, found.weight_shift)
        assert found.cycles == pytest.approx(recorded["cycles"], rel=0, abs=slack), name
        assert stalls == tuple(recorded[counter] for counter in ("weight_stall", "weight_shift")), name


@pytest.mark.parametrize("config", DIRECTED, ids=name_of)
@pytest.mark.parametrize(
    ("memory", "pairs"), [("unified buffer", unified_buffer_pairs), ("accumulators", accumulator_pairs)]
)
def test_recorded_pairs(config: Config, memory: str, pairs: object) -> None:
    """Every instruction waits for every other exactly as long as in the hardware.

    The exception is an activation unit that reads a row in each cycle: in the middle of an instruction, one or two of
    its rows may conflict with rows of the matrix unit in a bank.
    """
    names, programs = zip(*pairs(config), strict=True)
    instructions = [instruction for program in (setup(), *programs) for instruction in program]
    found: dict[str, list[int]] = {}
    for name, cycles in zip(names, predict(instructions, config).programs[1:], strict=True):
        found.setdefault(name, []).append(cycles)
    slack = 2 * int(config.column_groups == 1)
    for name, recorded in expected(config)["pairs"][memory].items():
        assert found[name] == pytest.approx(recorded, rel=0, abs=slack), name
    assert found.keys() == expected(config)["pairs"][memory].keys()


@pytest.mark.parametrize("latency", [4, 40])
def test_random_programs(latency: int) -> None:
    """Every instruction and mode, in random order."""
    config = openmxu.Config()
    total = [0, 0]
    with VerilatedDevice(config, memory_latency=latency) as device:
        for seed in range(40):
            case = generate(config, seed, 80, fault_probability=0)
            device.reset()
            device.clear_counters()
            device.execute(case.instructions, case.host_memory.copy(), case.weight_memory)
            predicted, measured = (
                predict(case.instructions, config, memory_latency=latency).cycles,
                device.counters[Counter.CYCLES],
            )
            assert_close(predicted, measured)
            total = [total[0] + predicted, total[1] + measured]
    assert total[0] == pytest.approx(total[1], rel=0.0002)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_kinds_of_cycles(size: int) -> None:
    """Every cycle of a program is of one of four kinds, and each kind has its counter.

    Sometimes the model counts a cycle for another kind than the hardware, mostly where rows of the unified buffer are
    loaded while weight memory sends others, or while units read it whose instructions come later.
    """
    config = Config.for_size(size, profile="full")
    found = []
    with VerilatedDevice(config) as device:
        for seed in range(30):
            case = generate(config, seed, 80, fault_probability=0)
            device.reset()
            device.clear_counters()
            device.execute(case.instructions, case.host_memory.copy(), case.weight_memory)
            prediction, counters = predict(case.instructions, config), device.counters
            assert prediction.array_active == counters[Counter.ARRAY_ACTIVE]
            kinds = (prediction.array_active, prediction.weight_stall, prediction.weight_shift, prediction.non_matrix)
            assert sum(kinds) == prediction.cycles
            assert max(prediction.raw_stall, prediction.input_stall) <= prediction.non_matrix
            found.append([(getattr(prediction, kind.name.lower()), counters[kind]) for kind in cycle_model.KINDS])
    predicted, measured = np.moveaxis(np.array(found), 2, 0)
    wrong = np.abs(predicted - measured)
    assert (wrong <= 0.003 * measured.sum(axis=1, keepdims=True)).all()
    assert ((wrong == 0).mean(axis=0) > 0.6).all()
    assert (wrong.sum(axis=0) <= 0.005 * measured.sum(axis=0) + 15).all()


@pytest.mark.parametrize("shape", [(1, 64, 64), (64, 64, 64), (100, 70, 50)])
def test_kinds_of_cycles_of_products(shape: tuple[int, int, int]) -> None:
    """All the same as in the hardware, but for a cycle."""
    program = gemm(*shape, openmxu.Config())
    prediction = predict(program.instructions, program.config)
    with openmxu.open_device("verilator", program.config) as device:
        program.run(device, gemm_input(*shape[:2]))
        for kind in cycle_model.KINDS:
            assert getattr(prediction, kind.name.lower()) == pytest.approx(device.counters[kind], abs=1), kind


def test_stalls_belong_to_the_instructions_that_wait() -> None:
    config = openmxu.Config()
    program = assemble(
        """
        read_weights tiles=2
        matrixmultiply next_tile, unified_buffer=0, rows=1
        read_host_memory unified_buffer=100, rows=300
        matrixmultiply unified_buffer=100, rows=1, accumulator=1
        activate unified_buffer=500, rows=50
        matrixmultiply unified_buffer=500, rows=1, accumulator=60
        halt
        """,
        config,
    )
    prediction = predict(program, config)
    with VerilatedDevice(config) as device:
        device.execute(program, np.zeros(1 << 12, np.uint8), np.zeros(2 * config.tile_bytes, np.uint8))
        for kind in cycle_model.KINDS:
            assert getattr(prediction, kind.name.lower()) == device.counters[kind], kind
    stalls = prediction.stalls
    assert np.flatnonzero(stalls.weight_stall).tolist() == [1]
    assert stalls.weight_shift[1] == config.size - 1
    assert np.flatnonzero(stalls.input_stall).tolist() == [3]
    assert 280 < stalls.input_stall[3] < 320
    assert np.flatnonzero(stalls.raw_stall).tolist() == [5]
    assert 200 < stalls.raw_stall[5] < 260


RATES = (None, Fraction(97, 100), Fraction(34, 45), Fraction(1, 2), Fraction(5, 16), Fraction(1, 7))
"""Of a memory, as parts of a beat per cycle."""


@pytest.mark.parametrize("config", [openmxu.Config(profile="full"), Config.for_size(4, profile="full")], ids=name_of)
def test_random_programs_with_slow_memories(config: Config) -> None:
    """Each direction of the host port and the weight port transfer their beats at the memories' rates."""
    random = np.random.default_rng(1)
    for seed in range(30):
        host, weights = (RATES[number] for number in random.integers(len(RATES), size=2))
        memories = {
            "host_rate": host and host * config.host_data_bytes,
            "weight_rate": weights and weights * config.weight_data_bytes,
            "memory_latency": (4, 40)[seed % 2],
        }
        case = generate(config, seed, 80, fault_probability=0)
        with VerilatedDevice(config, **memories) as device:
            device.execute(case.instructions, case.host_memory.copy(), case.weight_memory)
            assert_close(predict(case.instructions, config, **memories).cycles, device.counters[Counter.CYCLES])


@pytest.mark.parametrize("transfer", ["read_host_memory", "write_host_memory"])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(5, 16), Fraction(97, 100)])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_long_transfer_takes_as_long_as_its_beats(transfer: str, share: Fraction, size: int) -> None:
    """Rows of half a beat, of one, and of two, in configurations that other tests build."""
    config, rows = Config.for_size(size, profile="full"), 1001
    beat_bytes = config.host_data_bytes
    program = assemble(f"{transfer} unified_buffer=3, rows={rows}, host={size}\nhalt")
    cycles = {}
    for rate in (None, share * beat_bytes):
        with VerilatedDevice(config, host_rate=rate) as device:
            device.execute(program, np.zeros(1 << 15, np.uint8), np.zeros(0, np.uint8))
            cycles[rate] = device.counters[Counter.CYCLES]
        assert predict(program, config, host_rate=rate).cycles == cycles[rate]
    beats = rows * size / beat_bytes
    expected = max(rows, float(beats / share)) - max(rows, beats)
    assert cycles[share * beat_bytes] - cycles[None] == pytest.approx(expected, abs=8)


def test_tiles_at_half_the_rate_take_twice_the_time() -> None:
    config = openmxu.Config()
    program = assemble("read_weights tiles=100\n" + "matrixmultiply next_tile, rows=1\n" * 100 + "halt")
    weights = np.zeros(100 * config.tile_bytes, np.uint8)
    cycles = {}
    for rate in (None, Fraction(config.weight_data_bytes, 2), Fraction(config.weight_data_bytes, 4)):
        with VerilatedDevice(config, weight_rate=rate) as device:
            device.execute(program, np.zeros(0, np.uint8), weights)
            cycles[rate] = device.counters[Counter.CYCLES]
        assert predict(program, config, weight_rate=rate).cycles == cycles[rate]
    beats = weights.size // config.weight_data_bytes
    half, quarter = list(cycles.values())[1:]
    assert quarter - half == 2 * beats - 2
    assert half > 2 * beats


def test_tiles_that_are_not_asked_for_take_no_time() -> None:
    """The next program's tiles come as soon as ever if Halt drops those that wait for room."""
    config = openmxu.Config()
    text = "read_weights tiles=14\nhalt\nread_weights tiles=1\nmatrixmultiply next_tile, rows=1\nhalt"
    program = assemble(text)
    with VerilatedDevice(config, weight_rate=Fraction(1, 4)) as device:
        device.execute(program, np.zeros(0, np.uint8), np.zeros(1 << 10, np.uint8))
        assert predict(program, config, weight_rate=Fraction(1, 4)).cycles == device.counters[Counter.CYCLES]


LOADS = (
    """
    set_configuration register=LOAD_PARAMETERS, unified_buffer=200, count=3
    set_configuration register=LOAD_PARAMETERS, unified_buffer=300, count=1
    set_configuration register=LOAD_TABLE, unified_buffer=1000
"""
    + 7 * "nop\n"
)
"""Three instructions for the activation unit, and time until they no longer count as handed over shortly before."""

CONTENTION = {
    # One burst per row, more of them than may be outstanding.
    "bursts": "set_configuration register=HOST_STRIDE, stride=16\nread_host_memory_alternate rows=65",
    # Rows outside the plane are not read, so they do not keep a load from reading.
    "padding": """
        convolve next_tile, unified_buffer=0, accumulator=100, height=60, width=1, dy=-1000
        matrixmultiply wide_input, rows=1
        set_configuration register=LOAD_PARAMETERS, unified_buffer=200, count=4
    """,
    # No window of the pooling lies inside its plane, so no row is read.
    "outside": """
        set_configuration register=POOLING_WINDOW, height=1, width=1, stride_y=1, stride_x=1, pad_top=95
        set_configuration register=POOLING_PLANE, height=5, width=5, output_width=3
        activate from_unified_buffer, unified_buffer=600, source=1, rows=6, pooling=AVERAGE
    """,
    # Source rows that begin in the bank that the matrix unit reads.
    "banks": """
        matrixmultiply next_tile, wide_input, unified_buffer=1, rows=100
        activate from_unified_buffer, unified_buffer=600, source=301, rows=20
    """,
    # Passes over sums wait for the additions of the array, those over the second operand between them do not.
    "operands": """
        set_configuration register=OPERAND_ADDRESS, unified_buffer=200
        matrixmultiply next_tile, accumulate, rows=40
        activate unified_buffer=600, source=900, rows=60, operand=MULTIPLY
    """,
    # The host writer waits for the reads of a load.
    "loads": """
        set_configuration register=LOAD_TABLE, unified_buffer=200
        write_host_memory unified_buffer=500, rows=400, host=4096
    """,
    # Three loads are still in flight, with which the last instruction is compared in one more cycle.
    "comparison": f"{LOADS}matrixmultiply next_tile, unified_buffer=1100, rows=1000",
    # They are so as well if they wait for a transfer.
    "chain": f"""
        read_host_memory unified_buffer=200, rows=500
        {LOADS}matrixmultiply next_tile, unified_buffer=1100, rows=1000
    """,
    # Nothing is in flight, and the dispatcher knows that already when the second one comes.
    "events": "host_synchronize tag=1\nhost_synchronize tag=2\ninterrupt_host tag=3",
    "weights": "read_weights tiles=2\nhost_synchronize tag=1\ninterrupt_host tag=2",
}


@pytest.mark.parametrize("name", CONTENTION)
def test_contention(name: str) -> None:
    """Exact where units meet in a memory for long."""
    config = openmxu.Config()
    begin = "set_configuration register=CONVOLUTION_PLANE, height=1, width=1, stride_y=1, stride_x=1\n"
    program = assemble(begin + "read_weights tiles=1\nsynchronize units=31\n" + CONTENTION[name] + "\nhalt", config)
    for latency in (4, 40):
        with VerilatedDevice(config, memory_latency=latency) as device:
            device.execute(program, np.zeros(1 << 14, np.uint8), np.zeros(1 << 10, np.uint8))
            assert predict(program, config, memory_latency=latency).cycles == device.counters[Counter.CYCLES]


@pytest.mark.parametrize("nops", range(5))
@pytest.mark.parametrize("tiles", [(14,), (3, 14), (7, 1), (7, 7), (1, 1, 1, 9)])
def test_tiles_that_nobody_takes(tiles: tuple[int, ...], nops: int) -> None:
    """Those that were requested come, and are discarded one after the other."""
    read_weights, nop = format_named("read_weights"), format_named("nop")
    program = [*(read_weights(tiles=count) for count in tiles), *[nop()] * nops, HALT]
    config = openmxu.Config()
    with VerilatedDevice(config) as device:
        device.execute(program, np.zeros(0, np.uint8), np.zeros(max(tiles) * config.tile_bytes, np.uint8))
        assert predict(program, config).cycles == device.counters[Counter.CYCLES]


def measured(program: openmxu.Program, inputs: np.ndarray, latency: int = 4) -> int:
    with openmxu.open_device("verilator", program.config, memory_latency=latency) as device:
        program.run(device, inputs)
        return device.counters[Counter.CYCLES]


@pytest.mark.parametrize("shape", [(1, 64, 64), (8, 64, 64), (64, 64, 64), (100, 70, 50), (16, 256, 128)])
def test_products(shape: tuple[int, int, int]) -> None:
    program = gemm(*shape, openmxu.Config())
    assert_close(predict(program.instructions, program.config).cycles, measured(program, gemm_input(*shape[:2])))


@pytest.mark.parametrize(
    ("channels", "plane", "kernel", "stride", "pool"),
    [
        ((3, 16), (32, 32), 3, 1, 2),
        ((1, 6), (28, 28), 3, 1, 1),
        ((16, 32), (16, 16), 3, 2, 1),
        ((16, 32), (32, 32), 1, 2, 1),
        ((9, 17), (15, 13), 5, 1, 3),
    ],
)
def test_convolutions(channels: tuple[int, int], plane: tuple[int, int], kernel: int, stride: int, pool: int) -> None:
    network = conv_network(*channels, *plane, kernel=kernel, stride=stride, pool=pool)
    program = compile_network(network, openmxu.Config(), 2)
    inputs = np.repeat(conv_input(channels[0], *plane), 2, axis=0)
    assert_close(predict(program.instructions, program.config).cycles, measured(program, inputs), CONVOLUTION_LIMIT)


def test_rows_of_several_beats() -> None:
    """With strides of two the host writer gets a row or two in the cycles in which the matrix unit reads none."""
    network = conv_network(16, 32, 32, 32, kernel=3, stride=2, pool=1)
    program = compile_network(network, Config.for_size(16), 8)
    inputs = np.repeat(conv_input(16, 32, 32), 8, axis=0)
    assert_close(predict(program.instructions, program.config).cycles, measured(program, inputs))


def test_a_memory_that_answers_at_once() -> None:
    """The reader takes the first beat of a burst a cycle later: it does not know yet where its row goes."""
    program = gemm(20, 19, 1, openmxu.Config())
    cycles = measured(program, gemm_input(20, 19), 1)
    assert predict(program.instructions, program.config, memory_latency=1).cycles == cycles


def test_more_reads_than_the_reader_has_places_for() -> None:
    """A queue of eight holds more transfers than may be on their way at a time."""
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=1024, accumulator_rows=256, command_queue_depth=8)
    program = compile_network(conv_network(8, 8, 7, 5, kernel=1, stride=1, pool=2), config, 1, effort=0)
    cycles = measured(program, conv_input(8, 7, 5), 100)
    assert predict(program.instructions, config, memory_latency=100).cycles == cycles


def test_results_in_uneven_steps() -> None:
    """Where the matrix unit holds up some passes of an Activate, rows that are read meet the others' results."""
    config = Config.for_size(
        8, activation_lanes=4, host_data_bytes=16, weight_data_bytes=4, accumulator_rows=512, unified_buffer_rows=2048
    )
    program = compile_network(conv_network(33, 1, 15, 14, kernel=1, stride=1, pool=1), config, 1, effort=0)
    cycles = measured(program, conv_input(33, 15, 14), 10)
    assert predict(program.instructions, config, memory_latency=10).cycles == cycles


def test_any_configuration() -> None:
    """The model also works for configurations that are too large to simulate."""
    program = gemm(256, 1024, 512, Config.preset("tpu_v1"))
    fetch = program.weights.size // program.config.weight_data_bytes
    assert fetch < predict(program.instructions, program.config).cycles < 1.5 * fetch
    for size in (2, 32):
        for config in configurations(size):
            case = generate(config, 1, 80, fault_probability=0)
            assert predict(case.instructions, config).cycles > 5 * len(case.instructions)


def test_times_of_completion() -> None:
    config = openmxu.Config()
    program: list[Instruction] = assemble(
        """
        read_weights tiles=1
        read_host_memory unified_buffer=0, rows=100
        matrixmultiply next_tile, unified_buffer=0, rows=100
        activate unified_buffer=100, rows=100
        write_host_memory unified_buffer=100, rows=100
        halt
        """,
        config,
    )
    found = predict(program, config)
    assert (np.diff(found.accepted) >= 5).all()
    # Each waits for the one before; a row takes one cycle to read and four cycles to activate.
    read, multiplied, activated, written, halted = found.done[1:].tolist()
    assert read > 100
    assert multiplied > read + 100
    assert activated > multiplied + 400
    assert written > activated + 100
    assert halted == found.cycles == written + 3


def test_memory_latency_is_checked() -> None:
    with pytest.raises(ValueError, match="memory_latency must be at least 1 cycle, not 0"):
        predict([HALT], openmxu.Config(), memory_latency=0)


def test_rates_are_checked() -> None:
    with pytest.raises(ValueError, match="host_rate must be positive, not 0"):
        predict([HALT], openmxu.Config(), host_rate=0)
    with pytest.raises(TypeError, match=r"weight_rate must be an int or a Fraction, not 1\.5"):
        predict([HALT], openmxu.Config(), weight_rate=1.5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--seed", "4"), "--seed is for --random"),
        (("--random", "0"), "--random needs at least 1 program"),
        (("--random", "2", "--write"), "neither --case nor --write"),
    ],
)
def test_script_refuses_options_that_do_not_go_together(
    options: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["cycle_model.py", *options])
    with pytest.raises(SystemExit, match="2"):
        cycle_model.main()
    assert text in capsys.readouterr().err


def test_bursts_behind_a_long_one_wait_until_its_rows_have_come() -> None:
    """Few of them may be outstanding while the rows of the long one are still to be written."""
    config = openmxu.Config()
    program = assemble(
        "set_configuration register=HOST_STRIDE, stride=16\nread_host_memory unified_buffer=500, rows=9\n"
        "read_host_memory_alternate unified_buffer=100, rows=18\nhalt"
    )
    memory = np.zeros(512, np.uint8)
    with VerilatedDevice(config, memory_latency=40) as device:
        device.execute(program, memory, memory)
        assert predict(program, config, memory_latency=40).cycles == device.counters[Counter.CYCLES]


def test_loaded_tiles_count_for_what_takes_them() -> None:
    """A tile occupies the weight path as long as it comes; those that a program leaves are not the next one's."""
    config = Config.for_size(16)
    program = assemble("""
        load_weights unified_buffer=0
        matrixmultiply next_tile, rows=2
        read_weights weights=0, tiles=3
        matrixmultiply next_tile, rows=2
        halt
        load_weights unified_buffer=0
        load_weights unified_buffer=16
        matrixmultiply next_tile, rows=2
        matrixmultiply next_tile, rows=2
        read_weights weights=0, tiles=1
        matrixmultiply next_tile, rows=2
        halt
    """)
    demand = predict(program, config).demand
    assert demand.weights.tolist() == [0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 32, 0]
    assert demand.weight_rows.tolist() == [0, 16, 0, 16, 0, 0, 0, 16, 16, 0, 16, 0]
    assert (demand.weight_bytes > 0).tolist() == (demand.weights == 32).tolist()
