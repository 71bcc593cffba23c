"""Resets in the middle of a program, at any time: the core works afterwards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.arch.events import STATUS_UNITS_OFFSET
from openmxu.arch.isa import Instruction, Operand, Register, Unit, encode_program, format_named
from openmxu.sim.interpreter import Interpreter
from tb.directed.instructions import set_register
from tb.directed.parameters import parameter_set
from tb.lockstep import Case, cases, run_case
from tb.lockstep.campaign import verilated_device
from tb.lockstep.case import HALT

__all__ = ["check_resets"]

_RESETS = 40

_FIRST_SEED = 7000

_DURING_SUMS = range(280, 310, 3)
"""Cycles after which one more program is reset, while it is at work."""

_SUMS = 40
"""Sums of that program, each of some rows."""

_PATIENCE = 10_000
"""Cycles without a transfer."""


def check_resets(config: Config, options: Mapping[str, object]) -> None:
    """Reset the core while it runs a program, and run the whole program after that.

    The programs are random ones, and one in which every other pass of the activation unit is that of an operand.

    Raises
    ------
    AssertionError
        The results differ from those of the interpreter, or no unit was busy in most of the resets of random programs,
        or not the activation unit in those of the other one.
    """
    busy = 0
    for case in cases(_FIRST_SEED, _RESETS, [config]):
        busy += _reset(case, 20 + 13 * case.seed % 300, options) != 0
    assert busy > _RESETS // 2
    operands = _operands(config)
    for cycles in _DURING_SUMS:
        assert _reset(operands, cycles, options) >> Unit.ACTIVATION & 1


def _reset(case: Case, cycles: int, options: Mapping[str, object]) -> int:
    """Reset the core after so many cycles of a case, and run all of it; the units that were busy."""
    load, bytes_read = _load(case.config)
    zeros, nothing = np.zeros(bytes_read, np.uint8), np.zeros(0, np.uint8)
    with verilated_device(case, **options) as device:
        model = device._model
        model.attach(case.host_memory.copy(), case.weight_memory.copy())
        device._set_windows(case.host_memory.size, case.weight_memory.size)
        words = encode_program(case.instructions)
        model.feed(words, halts=len(words))
        model.run(cycles, patience=_PATIENCE)
        busy = device._read_status() >> STATUS_UNITS_OFFSET
        device.reset()
        # Memories keep the results of the interrupted program; parameters and tables cannot be read.
        before, reference = device.snapshot(), Interpreter(case.config)
        reference.unified_buffer[:], reference.accumulators[:] = before.unified_buffer, before.accumulators
        for each in (device, reference):
            each.execute(load, zeros, nothing)
        mismatch = run_case(case, device, reference)
        assert mismatch is None, f"seed {case.seed}, reset after {cycles} cycles: {mismatch}"
    return busy


def _operands(config: Config) -> Case:
    """Sums of elements and operands, one after the other; the first results are those of the first sums."""
    rows = PARAMETER_ROWS
    elements, operands, results, others = (number * rows for number in range(1, 5))
    values = np.random.default_rng(1).integers(0, 60, 2 * rows * config.size, np.uint8)
    first, other = (
        format_named("activate")(
            unified_buffer=place, source=elements, rows=rows, from_unified_buffer=1, operand=Operand.ADD
        )
        for place in (results, others)
    )
    program = (
        format_named("read_host_memory")(rows=results),
        set_register(Register.LOAD_PARAMETERS, count=1),
        set_register(Register.OUTPUT_FORMAT, minimum=-128, maximum=127),
        set_register(Register.OPERAND_ADDRESS, unified_buffer=operands),
        set_register(Register.OPERAND_SCALE, scale=0x3F800000),
        first,
        *_SUMS * (other,),
        HALT,
    )
    host = np.concatenate([parameter_set(config, bias=0, scale=1), values])
    return Case(config, program, host, np.zeros(64, np.uint8), seed=1)


def _load(config: Config) -> tuple[tuple[Instruction, ...], int]:
    """A program that sets all parameters and tables to 0, and the number of bytes that it reads."""
    sets = config.parameter_sets
    rows = max(PARAMETER_ROWS * sets, table_rows(config.size))
    program = (
        format_named("read_host_memory")(rows=rows),
        set_register(Register.LOAD_PARAMETERS, count=sets),
        *(set_register(Register.LOAD_TABLE, number=number) for number in range(TABLES)),
        HALT,
    )
    return program, rows * config.size
