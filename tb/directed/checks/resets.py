"""Resets in the middle of a program, at any time: the core works afterwards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, TABLES, table_rows
from openmxu.arch.events import STATUS_UNITS_OFFSET
from openmxu.arch.isa import Instruction, Register, encode_program, format_named
from openmxu.sim.interpreter import Interpreter
from tb.directed.instructions import set_register
from tb.lockstep import cases, run_case
from tb.lockstep.campaign import verilated_device
from tb.lockstep.case import HALT

__all__ = ["check_resets"]

_RESETS = 40

_FIRST_SEED = 7000

_PATIENCE = 10_000
"""Cycles without a transfer."""


def check_resets(config: Config, options: Mapping[str, object]) -> None:
    """Reset the core while it runs a random program, and run the whole program after that.

    Raises
    ------
    AssertionError
        The results differ from those of the interpreter, or no unit was busy in most of the resets.
    """
    load, bytes_read = _load(config)
    zeros, nothing = np.zeros(bytes_read, np.uint8), np.zeros(0, np.uint8)
    busy = 0
    for case in cases(_FIRST_SEED, _RESETS, [config]):
        with verilated_device(case, **options) as device:
            model = device._model
            model.attach(case.host_memory.copy(), case.weight_memory.copy())
            device._set_windows(case.host_memory.size, case.weight_memory.size)
            words = encode_program(case.instructions)
            model.feed(words, halts=len(words))
            model.run(20 + 13 * case.seed % 300, patience=_PATIENCE)
            busy += device._read_status() >> STATUS_UNITS_OFFSET != 0
            device.reset()
            # Memories keep the results of the interrupted program; parameters and tables cannot be read.
            before, reference = device.snapshot(), Interpreter(config)
            reference.unified_buffer[:], reference.accumulators[:] = before.unified_buffer, before.accumulators
            for each in (device, reference):
                each.execute(load, zeros, nothing)
            mismatch = run_case(case, device, reference)
            assert mismatch is None, f"seed {case.seed}: {mismatch}"
    assert busy > _RESETS // 2


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
