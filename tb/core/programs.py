"""The core runs programs exactly as the interpreter does, with any stalls of its buses."""

import cocotb
import numpy as np
from cocotb.task import bridge

from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.arch.events import Counter
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, OutputFormat, Register, format_named
from openmxu.compiler.benchmark import gemm, gemm_input
from openmxu.device import DeviceFault
from openmxu.sim.interpreter import Interpreter
from tb.bench import CONFIG, random_generator
from tb.device import CocotbDevice
from tb.lockstep import cases
from tb.lockstep.programs.contents import random_parameters

CASES = 5
PRODUCTS = 5

_HALT = format_named("Halt")()
_READ = format_named("Read_Host_Memory")
_READ_WEIGHTS = format_named("Read_Weights")
_MULTIPLY = format_named("MatrixMultiply")
_CONFIGURE = format_named("Set_Configuration")
_WRITE = format_named("Write_Host_Memory")
_ACTIVATE = format_named("Activate")


def check_counters(device):
    """The four kinds of cycles add up to the total."""
    counters = device.counters
    kinds = (Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT, Counter.NON_MATRIX)
    assert sum(counters[kind] for kind in kinds) == counters[Counter.CYCLES] <= device.bench.cycle
    assert counters[Counter.RAW_STALL] <= counters[Counter.NON_MATRIX]
    assert counters[Counter.INPUT_STALL] <= counters[Counter.NON_MATRIX]
    return counters


def outcome(device, program, host, weights):
    """Events and fault of one call of ``execute``."""
    try:
        return device.execute(program, host, weights), None
    except DeviceFault as fault:
        return fault.events, (fault.code, fault.index)


def memories(device):
    """Unified buffer and accumulators, read by programs; the latter with the bias of parameter set 0 added."""
    rows, size = CONFIG.unified_buffer_rows, CONFIG.size
    nothing = np.zeros(0, np.uint8)
    buffer = np.zeros(rows * size, np.uint8)
    device.execute([_WRITE(unified_buffer=0, rows=rows, host=0), _HALT], buffer, nothing)
    program = []
    chunk = rows // 4
    for first in range(0, CONFIG.accumulator_rows, chunk):
        count = min(chunk, CONFIG.accumulator_rows - first)
        program.append(_ACTIVATE(unified_buffer=0, source=first, rows=count, output=OutputFormat.INT32))
        program.append(_WRITE(unified_buffer=0, rows=4 * count, host=4 * first * size))
    sums = np.zeros(4 * CONFIG.accumulator_rows * size, np.uint8)
    device.execute([*program, _HALT], sums, nothing)
    return buffer, sums


def run_case(case, device, reference):
    """Run a case on both devices; compare events, faults and all memories."""
    hosts = case.host_memory.copy(), case.host_memory.copy()
    for number, program in enumerate(case.executions()):
        got = outcome(device, program, hosts[0], case.weight_memory)
        assert got == outcome(reference, program, hosts[1], case.weight_memory), (case.seed, number)
        assert np.array_equal(*hosts), (case.seed, number)
    for mine, other in zip(memories(device), memories(reference), strict=True):
        assert np.array_equal(mine, other), case.seed
    check_counters(device)


def fill(device, seed):
    """Initialize every memory with known values."""
    rng = np.random.default_rng(seed)
    size, rows = CONFIG.size, CONFIG.unified_buffer_rows
    sets = min(CONFIG.parameter_sets, rows // PARAMETER_ROWS)
    parameters = np.concatenate([random_parameters(CONFIG, "special", rng) for _ in range(sets)])
    content = rng.integers(0, 256, (rows, size), np.uint8)
    content[: len(parameters)] = parameters
    program = [_READ(unified_buffer=0, rows=rows, host=0)]
    load = REGISTERS[Register.LOAD_PARAMETERS]
    for first in range(0, CONFIG.parameter_sets, sets):
        count = min(sets, CONFIG.parameter_sets - first)
        value = load.pack(unified_buffer=0, first=first, count=count)
        program.append(_CONFIGURE(register=Register.LOAD_PARAMETERS, value=value))
    load = REGISTERS[Register.LOAD_TABLE]
    for number in range(TABLES):
        first = min(number, rows - table_rows(size))
        program.append(_CONFIGURE(register=Register.LOAD_TABLE, value=load.pack(unified_buffer=first, number=number)))
    program.append(_READ_WEIGHTS(tiles=1, weights=0))
    for row in range(CONFIG.accumulator_rows):
        program.append(_MULTIPLY(unified_buffer=row % rows, accumulator=row, rows=1, next_tile=row == 0))
    weights = rng.integers(0, 256, CONFIG.tile_bytes, np.uint8)
    device.execute([*program, _HALT], content.reshape(-1).copy(), weights)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.7])
async def random_programs(dut, stall):
    """Random programs, some of them with a fault, each starting with the memory contents that the last one left."""
    device, reference = await CocotbDevice.start(dut, stall), Interpreter(CONFIG)
    seed = int(random_generator().integers(1 << 30))

    @bridge
    def run():
        for either in (device, reference):
            fill(either, seed)
        for case in cases(seed, CASES, [CONFIG]):
            for either in (device, reference):
                either.reset()
            run_case(case, device, reference)

    await run()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def matrix_products(dut, stall):
    """Compiled products of random shapes, one program after the other."""
    device, reference = await CocotbDevice.start(dut, stall), Interpreter(CONFIG)
    rng = random_generator()

    @bridge
    def run():
        for _ in range(PRODUCTS):
            m, k, n = rng.integers(1, 4 * CONFIG.size, 3).tolist()
            seed = int(rng.integers(1 << 30))
            program, given = gemm(m, k, n, CONFIG, seed=seed), gemm_input(m, k, seed=seed)
            device.clear_counters()
            result, expected = program.run(device, given), program.run(reference, given)
            assert np.array_equal(result["y"], expected["y"]), (m, k, n, seed)
            counters = check_counters(device)
            tiles = -(-k // CONFIG.size) * -(-n // CONFIG.size)
            assert counters[Counter.ARRAY_ACTIVE] >= m * tiles

    await run()


@cocotb.test()
async def programs_back_to_back(dut):
    """Several programs in one stream of instructions do not disturb each other."""
    device, reference = await CocotbDevice.start(dut, 0.2), Interpreter(CONFIG)
    seed = int(random_generator().integers(1 << 30))

    @bridge
    def run():
        for either in (device, reference):
            fill(either, seed)
            either.reset()
        (case,) = cases(seed, 1, [CONFIG])
        checker, stream = case.checker(), []
        for instruction in case.instructions:
            # Make each instruction a separate program, unless it needs tiles queued by an earlier one.
            if checker.check(instruction) is FaultCode.NONE:
                stream += [instruction]
                if instruction != _HALT:
                    stream += [_HALT]
                checker.begin_program()
        run_case(case.with_instructions([*stream, _HALT]), device, reference)

    await run()


@cocotb.test()
async def counters_clear(dut):
    """Cleared counters read as zero, and remain so while nothing runs."""
    device = await CocotbDevice.start(dut, 0.0)

    @bridge
    def run():
        device.execute([_HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))
        assert device.counters[Counter.CYCLES] > 0
        device.clear_counters()
        assert set(device.counters.values()) == {0}

    await run()
