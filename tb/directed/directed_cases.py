"""Cases that random programs seldom reach: every bit of every instruction, and sums of every size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import WORD_BITS, Instruction, Opcode, OutputFormat, Register, format_named
from tb.directed.boundary_cases import boundaries
from tb.directed.checks.wide import pooled_bits
from tb.directed.extreme_cases import extremes, long_program
from tb.directed.power_cases import many_tiles, powers_of_two
from tb.directed.queue_cases import full_queues
from tb.directed.rounding_cases import ties
from tb.directed.table_cases import tables
from tb.directed.timed_programs import host_memory, layers, weight_memory
from tb.lockstep import Case, generate
from tb.lockstep import cases as random_cases
from tb.lockstep.campaign import VERILATED
from tb.lockstep.case import HALT
from tb.lockstep.programs.steps import steps

__all__ = ["DIRECTED", "directed", "single_bits"]

DIRECTED = VERILATED[:3]
"""The configurations to run them on: for cases that do not depend on the size, the smaller ones are enough."""

_RANDOM = 100
"""Number of random programs for each of these configurations, more than for the larger ones."""

_STALLS = 10
"""Number of different memory environments for programs that wait for their tiles."""

_LOADS = 400
"""Number of parameter loads in the test of sums of every size."""

_TAKES_TILES = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE)
_ACTIONS = (Register.LOAD_PARAMETERS, Register.LOAD_TABLE)


def directed(config: Config, seed: int) -> Iterator[tuple[str, Case]]:
    """All cases of this module and its neighbours, each with a name; those that find most errors come first."""
    for name, cases in (
        ("ties", ties(config, seed)),
        ("extremes", extremes(config, seed)),
        ("powers of two", powers_of_two(config, seed)),
        ("boundaries", boundaries(config, seed)),
        ("many tiles", [many_tiles(config, seed)]),
        ("sums", [sums(config, seed)]),
        ("tables", [tables(config, seed)]),
        ("pooled bits", [pooled_bits(config, seed)]),
        ("single bits", single_bits(config, seed)),
        ("full queues", full_queues(config, seed)),
        ("late tiles", (_late_tiles(config, number) for number in range(seed, seed + _STALLS))),
        ("long program", [long_program(config, seed)]),
        ("random", random_cases(1000 * seed, _RANDOM, [config])),
    ):
        for number, case in enumerate(cases):
            yield f"{name} {number}", case


def _late_tiles(config: Config, seed: int) -> Case:
    """Multiplications that wait for tiles of a memory that has a high latency or stalls."""
    program = dict(layers(config))["late tiles"]
    return Case(config, tuple(program), host_memory(config), weight_memory(config), seed)


def single_bits(config: Config, seed: int) -> Iterator[Case]:
    """Legal instructions of every kind, each with every one of its bits inverted in turn: most of them fault.

    One case for each opcode and each configuration register. The registers have the values that a random program set.
    """
    found: dict[tuple[int, int | None], tuple[Instruction, dict[Register, int]]] = {}
    case_seed = seed
    while len(found) < len(Opcode) - 1 + len(Register) and case_seed < seed + 50:
        case = generate(config, case_seed, 60)
        for step in steps(case):
            register = step.values["register"] if step.opcode is Opcode.SET_CONFIGURATION else None
            found.setdefault((int(step.opcode), register), (step.instruction, dict(step.state.registers)))
        case_seed += 1
    for instruction, registers in found.values():
        program = tuple(_inverted(instruction, registers))
        yield Case(config, program, case.host_memory, case.weight_memory, seed, separate=True)


def _inverted(instruction: Instruction, registers: dict[Register, int]) -> Iterator[Instruction]:
    configure, opcode = format_named("set_configuration"), instruction.format.opcode
    setup = [configure(register=name, value=value) for name, value in registers.items() if name not in _ACTIONS]
    yield from setup
    for bit in range(WORD_BITS):
        if opcode in _TAKES_TILES:
            # Queue three tiles and take one of them: enough for any combination of flags.
            yield format_named("read_weights")(tiles=3)
            yield format_named("matrixmultiply")(rows=1, next_tile=1)
        yield Instruction(instruction.word ^ 1 << bit)
        yield HALT
        if opcode is Opcode.SET_CONFIGURATION:
            # Restore the register; if its number was changed, restore all.
            yield from setup if bit in range(16, 32) else (instruction,)
            yield HALT


def sums(config: Config, seed: int) -> Case:
    """Activate with sums and scales over their whole ranges. The accumulators are 0, so the biases are the sums."""
    rng = np.random.default_rng(seed)
    sets = config.parameter_sets
    rows = PARAMETER_ROWS * sets
    activate, configure = format_named("activate"), format_named("set_configuration")
    program: list[Instruction] = []
    blocks = []
    for load in range(_LOADS):
        blocks.append(_parameters(config, rng))
        low, high = sorted(rng.integers(-(1 << 17), 1 << 17, 2).tolist())
        zero_point = int(rng.integers(-(1 << 17), 1 << 17)) >> int(rng.integers(18))
        value = zero_point & 0x3FFFF | (low & 0x3FFFF) << 18 | (high & 0x3FFFF) << 36
        program += [
            configure(register=Register.OUTPUT_FORMAT, value=value),
            format_named("read_host_memory")(unified_buffer=0, rows=rows, host=load * rows * config.size),
            configure(register=Register.LOAD_PARAMETERS, value=sets << 40),
            *(
                activate(unified_buffer=rows + 2 * number, rows=1, parameters=number, output=OutputFormat.WORD)
                for number in range(sets)
            ),
            HALT,
        ]
    return Case(config, tuple(program), np.concatenate(blocks), np.zeros(64, np.uint8), seed, separate=True)


def _parameters(config: Config, rng: np.random.Generator) -> np.ndarray:
    """Parameter sets in the format of LOAD_PARAMETERS, mostly with scaled sums of 0 to 18 bits."""
    shape = (config.parameter_sets, config.size)
    bits = rng.integers(0, 32, shape)
    biases = rng.integers(-(1 << 31), 1 << 31, shape) >> (31 - bits)
    # A power of two as scale gives half-way cases; the other significands are random.
    exponents = np.where(rng.random(shape) < 0.9, rng.integers(0, 18, shape) - bits, rng.integers(-126, 128, shape))
    significands = np.where(rng.random(shape) < 0.3, 0, rng.integers(0, 1 << 23, shape))
    signs = rng.integers(0, 2, shape)
    words = np.stack([biases & 0xFFFFFFFF, signs << 31 | (exponents + 127) << 23 | significands], axis=1)
    octets = words.astype("<u4").view(np.uint8).reshape(config.parameter_sets, 2, config.size, 4)
    return np.ascontiguousarray(octets.transpose(0, 1, 3, 2)).reshape(-1)
