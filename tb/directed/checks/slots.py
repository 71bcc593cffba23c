"""Pairs of instructions whose ranges overlap, or just do not, in every slot of the scoreboard and anywhere in memory.

Addresses and slot numbers must not matter: programs with the same pairs take the same cycles and count the same stalls,
wherever their rows are. An error in one bit of a comparison makes a pair wait longer, or not at all.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.isa import Instruction, Operand, OutputFormat, Pooling, Register, Unit, format_named
from openmxu.device import Snapshot
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.instructions import load_tile, set_register, synchronize
from tb.directed.slot_chains import HOST_BYTES, chains
from tb.directed.timed_programs import ROWS, setup, weight_memory
from tb.lockstep.case import HALT

__all__ = ["check_slots"]

_LEAST_PROGRAMS = 6
"""Programs with the same pairs; more if the scoreboard has more slots."""

_ROOM = 10 * PARAMETER_ROWS
"""Smallest memory that has free rows for instructions without conflict."""

_BASES = 6
"""Number of random base addresses of host memory, besides 0 and the highest one."""


@dataclass(frozen=True)
class _Access:
    """An access at a variable address: ``make`` takes its first row or byte, and the first of some unused rows."""

    unit: Unit
    make: Callable[[int, int], list[Instruction]]
    length: int
    writes: bool


@dataclass(frozen=True)
class _Program:
    """A program with its results, and the group of programs that must have the same counters, or ""."""

    group: str
    instructions: tuple[Instruction, ...]
    host: NDArray[np.uint8]
    left: Snapshot


def check_slots(config: Config, options: Mapping[str, object]) -> None:
    """Run the pairs on a device with the given options.

    Raises
    ------
    AssertionError
        The results of a program differ from those of the interpreter, or its counters depend on addresses or slots.
    """
    for base, programs in _programs(config):
        with VerilatedDevice(config, host_base=base, **options) as device:
            counted: dict[str, dict] = {}
            for program in programs:
                device.clear_counters()
                host = _host_memory()
                device.execute(_moved(program.instructions, base), host, weight_memory(config))
                assert np.array_equal(host, program.host), "host memory"
                left = device.snapshot()
                assert np.array_equal(left.unified_buffer, program.left.unified_buffer), "unified buffer"
                assert np.array_equal(left.accumulators, program.left.accumulators), "accumulators"
                if program.group:
                    counts = dict(device.counters)
                    assert counted.setdefault(program.group, counts) == counts, f"counters of {program.group}"


@functools.cache
def _programs(config: Config) -> list[tuple[int, list[_Program]]]:
    """The base addresses of host memory, each with the programs to run there."""
    rng = np.random.default_rng(1)
    rows = [
        program
        for name, accesses, rows in (
            ("unified buffer", _unified_buffer_accesses(config), config.unified_buffer_rows),
            ("accumulators", _accumulator_accesses(config), config.accumulator_rows),
        )
        for program in _of_memory(config, name, accesses, rows, rng)
    ]
    highest = (1 << config.host_address_width) - HOST_BYTES
    bases = [0, highest, *(int(rng.integers(highest >> 6)) << 6 for _ in range(_BASES))]
    transfers = [
        list(_of_memory(config, "host memory", _host_accesses(config), HOST_BYTES, rng, config.host_alignment))
        for _ in bases
    ]
    transfers[0] = rows + transfers[0]
    # The chains count slots from power-on, and so have a device of their own.
    lists = [(0, list(chains(config))), *zip(bases, transfers, strict=True)]
    return [(base, _run(config, [("", setup()), *programs])) for base, programs in lists]


def _run(config: Config, programs: list[tuple[str, list[Instruction]]]) -> list[_Program]:
    device, found = Interpreter(config), []
    for group, program in programs:
        host = _host_memory()
        device.execute(program, host, weight_memory(config))
        found.append(_Program(group, tuple(program), host, device.snapshot()))
    return found


def _of_memory(
    config: Config, memory: str, accesses: list[_Access], size: int, rng: np.random.Generator, step: int = 1
) -> Iterator[tuple[str, list[Instruction]]]:
    """Programs with as many pairs as there are slots, each followed by one that advances a unit by one slot."""
    depth = config.command_queue_depth
    units = sorted({access.unit for access in accesses})
    # Banks, and positions within beats, are the same within a group.
    offsets = range(_phase(size)) if size >= _ROOM and size != HOST_BYTES else range(1)
    for first_unit in units:
        for second_unit in units:
            pairs = [
                (first, second, distance)
                for first in accesses
                for second in accesses
                if (first.unit, second.unit) == (first_unit, second_unit) and _may_conflict(first, second)
                for distance in (first.length, first.length - step, step - second.length, -second.length)
            ]
            if not pairs:
                continue
            name = f"{memory}, {first_unit.name} before {second_unit.name}"
            moves = range(max(depth, _LEAST_PROGRAMS))
            for start in range(0, len(pairs), depth):
                chosen = list(itertools.islice(itertools.cycle(pairs), start, start + depth))
                for variant in range(2):
                    offset = offsets[(start // depth + variant) % len(offsets)]
                    for _ in moves:
                        rotated = chosen[2 * variant :] + chosen[: 2 * variant]
                        yield f"{name}, {start}, {variant}", _pairs(config, rotated, size, offset, rng, nops=variant)
                        yield "", _move_on(config, chosen[0], size, offset, rng)
            meeting = [pair for pair in pairs if abs(pair[2]) < pair[0].length][:: max(1, len(pairs) // 4)]
            for number, pair in enumerate(meeting):
                far = rng.integers(2, size=depth)
                far[max(1, depth - number) :] = 1  # a wait for the last one would hide the others
                far &= size >= _ROOM
                offset = offsets[number % len(offsets)]
                for _ in moves:
                    yield f"{name}, queue {number}", _queue(config, pair, far, size, offset, rng)
                    yield "", _move_on(config, pair, size, offset, rng)
                    if first_unit == second_unit:
                        yield "", _move_on(config, pair, size, offset, rng)  # an odd number of slots in all


def _may_conflict(first: _Access, second: _Access) -> bool:
    """Whether one may have to wait for the other; of one unit's instructions only those of the activation unit may."""
    if first.unit == second.unit:
        return first.unit is Unit.ACTIVATION and first.writes and not second.writes
    return first.writes or second.writes


def _pairs(
    config: Config, pairs: list, size: int, offset: int, rng: np.random.Generator, *, nops: int
) -> list[Instruction]:
    """All pairs, with ``nops`` between the two of each: some errors may only show in every other cycle."""
    program = load_tile(config)
    for pair in pairs:
        row, other_row, free = _place(pair, size, offset, rng)
        first, second = pair[0].make(row, free), pair[1].make(other_row, free)
        program += [*first, *(format_named("nop")() for _ in range(nops)), *second, synchronize()]
    return [*program, HALT]


def _queue(
    config: Config,
    pair: tuple[_Access, _Access, int],
    far: NDArray[np.int64],
    size: int,
    offset: int,
    rng: np.random.Generator,
) -> list[Instruction]:
    """Fill a queue, then add an instruction that conflicts with those in it that are not ``far``."""
    row, other_row, free = _place(pair, size, offset, rng)
    distance = 2 * (pair[0].length + pair[1].length)
    places = (
        place for place in range(offset, size, _phase(size)) if min(abs(place - row), abs(place - free)) >= distance
    )
    elsewhere = next(places, row)
    program = load_tile(config)
    for is_far in far:
        program += pair[0].make(elsewhere if is_far else row, free)
    return [*program, *pair[1].make(other_row, free), synchronize(), HALT]


def _move_on(
    config: Config, pair: tuple[_Access, _Access, int], size: int, offset: int, rng: np.random.Generator
) -> list[Instruction]:
    """A program that uses one more slot of the first unit than of the second."""
    row, _, free = _place(pair, size, offset, rng)
    return [*load_tile(config), *pair[0].make(row, free), HALT]


def _place(
    pair: tuple[_Access, _Access, int], size: int, offset: int, rng: np.random.Generator
) -> tuple[int, int, int]:
    """Addresses of both accesses of a pair, and of ``ROWS`` unused rows; all have the same ``offset`` from a phase."""
    first, second, distance = pair
    phase = _phase(size)
    low, high = min(0, distance), max(first.length, distance + second.length)
    free_is_low = bool(rng.integers(2))
    free = offset if free_is_low else size - phase + offset - (phase if offset else 0)
    least = -low + (free + ROWS) * free_is_low
    most = (size if free_is_low else free) - high
    places = range(-(-(least - offset) // phase), (most - offset) // phase + 1)
    # The first and the last place as often as all others.
    place = (places[0], places[-1], *rng.choice(places, 2).tolist())[int(rng.integers(4))]
    row = place * phase + offset
    return row, row + distance, free


def _unified_buffer_accesses(config: Config) -> list[_Access]:
    read, write, multiply, convolve, activate = (
        format_named(name)
        for name in ("read_host_memory", "write_host_memory", "matrixmultiply", "convolve", "activate")
    )
    far = HOST_BYTES // 2
    from_buffer = functools.partial(activate, rows=ROWS, from_unified_buffer=1)

    def host(row: int) -> int:
        """A host address that varies with the row, in another range than that of the writes."""
        return row // 4 % 8 * 64

    return [
        _Access(Unit.HOST_READ, lambda row, free: [read(unified_buffer=row, rows=ROWS, host=host(row))], ROWS, True),
        _Access(
            Unit.HOST_WRITE,
            lambda row, free: [write(unified_buffer=row, rows=ROWS, host=far + host(row))],
            ROWS,
            False,
        ),
        _Access(Unit.MATRIX, lambda row, free: [multiply(unified_buffer=row, rows=ROWS)], ROWS, False),
        _Access(Unit.MATRIX, lambda row, free: [convolve(unified_buffer=row, height=2, width=ROWS // 2)], ROWS, False),
        _Access(Unit.ACTIVATION, lambda row, free: [activate(unified_buffer=row, source=ROWS, rows=ROWS)], ROWS, True),
        _Access(Unit.ACTIVATION, lambda row, free: [from_buffer(unified_buffer=free, source=row)], ROWS, False),
        _Access(
            Unit.ACTIVATION,
            lambda row, free: [from_buffer(unified_buffer=free, source=row, rows=2, pooling=Pooling.MAX)],
            ROWS,
            False,
        ),
        _Access(
            Unit.ACTIVATION,
            lambda row, free: [
                set_register(Register.OPERAND_ADDRESS, unified_buffer=row),
                activate(unified_buffer=free, source=ROWS, rows=ROWS, operand=Operand.MULTIPLY),
            ],
            ROWS,
            False,
        ),
        _Access(
            Unit.ACTIVATION,
            lambda row, free: [set_register(Register.LOAD_PARAMETERS, unified_buffer=row, count=1)],
            PARAMETER_ROWS,
            False,
        ),
    ]


def _accumulator_accesses(config: Config) -> list[_Access]:
    """Each uses two accumulator rows, and unified buffer rows that no instruction of the other unit writes."""
    multiply, convolve, activate = (format_named(name) for name in ("matrixmultiply", "convolve", "activate"))
    int32 = functools.partial(activate, output=OutputFormat.INT32)
    return [
        _Access(Unit.MATRIX, lambda row, free: [multiply(accumulator=row, rows=2)], 2, True),
        _Access(Unit.MATRIX, lambda row, free: [multiply(accumulator=row, rows=2, accumulate=1)], 2, True),
        _Access(Unit.MATRIX, lambda row, free: [convolve(accumulator=row, height=2, width=1)], 2, True),
        _Access(Unit.MATRIX, lambda row, free: [multiply(accumulator=row, rows=2, wide_input=1)], 2, True),
        _Access(Unit.ACTIVATION, lambda row, free: [activate(unified_buffer=12, source=row, rows=2)], 2, False),
        _Access(Unit.ACTIVATION, lambda row, free: [int32(unified_buffer=12, source=row, rows=2)], 2, False),
    ]


def _host_accesses(config: Config) -> list[_Access]:
    """Transfers of which reads and writes use separate rows of the unified buffer."""
    rows = ROWS
    accesses = []
    for name, unit, row in (("read", Unit.HOST_READ, 0), ("write", Unit.HOST_WRITE, 2 * ROWS)):
        plain, strided = format_named(f"{name}_host_memory"), format_named(f"{name}_host_memory_alternate")
        accesses += [
            _Access(
                unit,
                lambda byte, free, make=plain, row=row: [make(unified_buffer=row, rows=rows, host=byte)],
                rows * config.size,
                unit is Unit.HOST_WRITE,
            ),
            _Access(
                unit,
                lambda byte, free, make=strided, row=row: [
                    set_register(Register.HOST_STRIDE, stride=3 * config.size),
                    make(unified_buffer=row, rows=rows, host=byte),
                ],
                ((rows - 1) * 3 + 1) * config.size,
                unit is Unit.HOST_WRITE,
            ),
        ]
    return accesses


def _host_memory() -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, HOST_BYTES, np.uint8)


def _phase(size: int) -> int:
    """Alignment in rows or bytes of all moves, so that banks and positions within beats stay the same."""
    return 64 if size == HOST_BYTES else 4


def _moved(program: tuple[Instruction, ...], base: int) -> list[Instruction]:
    return [
        instruction.format(**instruction.values | {"host": instruction["host"] + base})
        if base and "host" in instruction.values
        else instruction
        for instruction in program
    ]
