"""Random legal programs, biased towards errors of hardware that overlaps instructions.

The units use few, small, overlapping ranges of rows, so that nearly every instruction must wait for an earlier one, or
must not overtake it. Ranges are often at the ends of the memories, counts are mostly small, and each case has other
probabilities of instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from tb.lockstep.case import HALT, Case
from tb.lockstep.programs.activations import activate
from tb.lockstep.programs.builder import Builder
from tb.lockstep.programs.contents import DATA_ROWS, data_address
from tb.lockstep.programs.faulting import faulting_instructions
from tb.lockstep.programs.formats import FORMAT_REGISTERS, set_format
from tb.lockstep.programs.multiplications import load_and_multiply, load_weights, multiply, read_weights
from tb.lockstep.programs.transfers import load_parameters, load_table, transfer

__all__ = ["generate"]

_FAULT_WEIGHTS = {FaultCode.RESERVED_BITS: 3, FaultCode.ILLEGAL_VALUE: 5, FaultCode.UNIFIED_BUFFER_RANGE: 2}
"""Codes that many instructions can raise get more weight."""

_EVENTS = ("Host_Synchronize", "Interrupt_Host", "Debug_Tag", "Debug_Tag")


def generate(config: Config, seed: int, length: int, *, fault_probability: float = 0.0) -> Case:
    """A random case.

    Parameters
    ----------
    config
        Configuration of the device; the unified buffer must have at least 40 rows.
    seed
        Seed; equal arguments give equal cases.
    length
        Number of steps, each of a few instructions.
    fault_probability
        Probability that the case contains a fault, in its middle or at its end.

    Returns
    -------
    A case that ends with Halt and has no other faults.
    """
    builder = Builder(config, seed)
    chances = np.array(list(_STEPS.values())) * builder.rng.exponential(1, len(_STEPS))
    chances /= chances.sum()

    def step() -> None:
        list(_STEPS)[builder.rng.choice(len(_STEPS), p=chances)](builder)

    _begin(builder)
    for _ in range(length):
        step()
    if builder.probably(fault_probability):
        _fault(builder)
        for _ in range(builder.between(0, 5)):
            step()
    builder.append(HALT)
    return builder.case()


def _begin(builder: Builder) -> None:
    """Initialize formats, parameters, a table and memories, as most programs do."""
    for register in FORMAT_REGISTERS:
        if builder.probably(0.9):
            set_format(builder, register)
    if builder.probably(0.9):
        for parameter_set in builder.used_parameter_sets():
            load_parameters(builder, parameter_set)
    if builder.probably(0.4):
        load_table(builder)
    if builder.probably(0.8):
        _fill(builder)


def _fill(builder: Builder) -> None:
    """Read data into the first unified buffer rows, and write sums to every accumulator row."""
    config = builder.config
    rows = min(DATA_ROWS, config.unified_buffer_rows)
    builder.emit("Read_Host_Memory", rows=rows, host=data_address(config))
    read_weights(builder)
    rows = min(rows, config.accumulator_rows)
    for first in range(0, config.accumulator_rows, rows):
        rows = min(rows, config.accumulator_rows - first)
        builder.emit("MatrixMultiply", next_tile=first == 0, accumulator=first, rows=rows)


def _fault(builder: Builder) -> None:
    codes = builder.config.features.faults
    code = FaultCode(builder.one_of(*codes, weights=tuple(_FAULT_WEIGHTS.get(code, 1) for code in codes)))
    *before, faulting = faulting_instructions(code, builder.checker, builder.rng)
    for instruction in before:
        builder.append(instruction)
    builder.append_fault(faulting, code)


def _set_format(builder: Builder) -> None:
    set_format(builder, FORMAT_REGISTERS[builder.between(0, len(FORMAT_REGISTERS) - 1)])


def _load_and_activate(builder: Builder) -> None:
    """Load parameters or a table, followed at once by an Activate."""
    (load_parameters, load_table)[builder.between(0, 1)](builder)
    activate(builder)


def _chain(builder: Builder) -> None:
    """Several Activate instructions, which often read rows that earlier ones wrote."""
    for _ in range(builder.between(2, 4)):
        activate(builder)


def _synchronize(builder: Builder) -> None:
    builder.emit("Synchronize", units=builder.between(0, 31))


def _event(builder: Builder) -> None:
    builder.emit(_EVENTS[builder.between(0, len(_EVENTS) - 1)], tag=builder.between(0, 2**32 - 1))


def _nop(builder: Builder) -> None:
    builder.emit("Nop")


def _halt(builder: Builder) -> None:
    builder.append(HALT)


_STEPS: dict[Callable[[Builder], None], float] = {
    transfer: 8,
    read_weights: 2,
    load_weights: 1,
    load_and_multiply: 1,
    multiply: 7,
    activate: 6,
    _chain: 0.8,
    load_parameters: 0.6,
    load_table: 0.3,
    _load_and_activate: 0.5,
    _set_format: 1.5,
    _synchronize: 0.5,
    _event: 0.8,
    _nop: 0.3,
    _halt: 0.4,
}
"""Steps with their average frequencies; each case scales these at random."""
