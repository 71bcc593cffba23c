"""After a scrub, no program can find data that an earlier user left, or registers that it set."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLE_BYTES, TABLES
from openmxu.arch.events import Command, CoreStatus, Event, Management
from openmxu.arch.isa import Instruction, Opcode, Register, encode_program, format_named
from openmxu.device import Device
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator.library import Result
from tb.directed.instructions import set_register
from tb.lockstep import cases, outcome
from tb.lockstep.campaign import verilated_device
from tb.lockstep.case import HALT, Case

__all__ = ["check_clear", "check_registers_after_scrub", "early_scrubs"]

_ROWS = 4
"""Of each instruction of :func:`early_scrubs`."""

_PATIENCE = 10_000
"""Cycles for these programs and a scrub."""


def _run(device: Device, program: tuple[Instruction, ...], case: Case) -> tuple[NDArray[np.uint8], list[Event]]:
    """Run a program; returns the host memory afterwards, and the events."""
    host = case.host_memory.copy()
    events, _ = outcome(device, program, host, case.weight_memory.copy())
    return host, events


def _readers(config: Config) -> Iterator[tuple[Instruction, ...]]:
    """Programs that copy the contents of all memories to host memory; parameters and table entries are found by their
    effect on known numbers."""
    write, activate = format_named("Write_Host_Memory"), format_named("Activate")
    size, rows = config.size, config.unified_buffer_rows
    yield write(rows=rows), HALT
    for row in range(config.accumulator_rows):
        yield activate(source=row, rows=1, output=2), write(rows=4), HALT
    known = (format_named("Read_Host_Memory")(unified_buffer=rows - 1, rows=1),)
    limits = set_register(Register.OUTPUT_FORMAT, minimum=-(1 << 15), maximum=(1 << 15) - 1)
    for number in range(config.parameter_sets):
        source = {"from_unified_buffer": 1, "source": rows - 1, "rows": 1, "parameters": number}
        yield *known, activate(**source, output=2), write(rows=4), HALT
        yield *known, limits, activate(**source, output=1), write(rows=2), HALT
    if rows >= TABLE_BYTES // size:
        for number, index in itertools.product(range(TABLES), range(TABLE_BYTES)):
            only = set_register(Register.OUTPUT_FORMAT, minimum=index, maximum=index)
            yield only, activate(source=0, rows=1, table=1, table_number=number), write(rows=1), HALT


def _reader_results(device: Device, case: Case) -> list[bytes]:
    return [_run(device, reader, case)[0].tobytes() for reader in _readers(case.config)]


def check_clear(config: Config, options: Mapping[str, object]) -> None:
    """Scrub after programs that leave data in all memories.

    Raises
    ------
    AssertionError
        A program finds something that was there before, or the programs have left nothing that could be found.
    """
    memory = np.arange(4 * config.unified_buffer_rows * config.size, dtype=np.uint32).astype(np.uint8) | 1
    look = Case(config, (HALT,), memory, memory, 0)
    fresh = _reader_results(Interpreter(config), look)
    found_without = 0
    for case in cases(70, 3, [config]):
        with verilated_device(case, **options) as device:
            for execution in case.executions():
                _run(device, execution, case)
            found_without += _reader_results(device, look) != fresh
            for execution in case.executions():
                _run(device, execution, case)
            device.scrub()
            snapshot = device.snapshot()
            assert not snapshot.unified_buffer.any()
            assert not snapshot.accumulators.any()
            assert not any(device.counters.values())
            assert _reader_results(device, look) == fresh
    assert found_without > 1, "these programs leave nothing behind that the test could find"


def check_registers_after_scrub(config: Config, options: Mapping[str, object]) -> None:
    """Scrub between two programs, of which the second one does not write configuration registers.

    Raises
    ------
    AssertionError
        The second program leaves something else than it does after power-on.
    """
    for before, after in zip(cases(170, 8, [config]), cases(270, 8, [config]), strict=True):
        program = tuple(item for item in after.instructions if item.word & 0xFF != Opcode.SET_CONFIGURATION)
        after = after.with_instructions(program)
        with verilated_device(before, **options) as device, Interpreter(config) as fresh:
            for execution in before.executions():
                _run(device, execution, before)
            device.scrub()
            for execution in after.executions():
                found, wanted = _run(device, execution, after), _run(fresh, execution, after)
                assert found[1] == wanted[1], after.seed
                assert np.array_equal(found[0], wanted[0]), after.seed


def early_scrubs(config: Config, options: Mapping[str, object]) -> Iterator[tuple[bool, int]]:
    """Scrub during a program, with another one queued behind it, one cycle later each time, until both have ended.

    For each time: whether the second program still found the first one's data, and the cycles until all had ended.
    """
    read, write, activate = map(format_named, ("read_host_memory", "write_host_memory", "activate"))
    rows = {"rows": _ROWS}
    first = (read(**rows), activate(unified_buffer=_ROWS, from_unified_buffer=1, **rows), HALT)
    program = (*first, write(host=_ROWS * config.size, **rows), HALT)
    with VerilatedDevice(config, **options) as device:
        model, words = device._model, encode_program(program)
        for request in itertools.count():
            host = np.arange(1, 1 + 2 * _ROWS * config.size, dtype=np.uint8)
            device.execute([HALT], host, host)  # sets the windows of the memories
            model.attach(host, host)
            start = model.status().cycle
            model.feed(words, 2)
            if model.run(max(1, request), _PATIENCE) is Result.ENDED:
                return
            model.write_register(Management.COMMAND, 1 << Command.SCRUB)
            assert model.flush(_PATIENCE) is Result.ENDED
            while model.run(1, _PATIENCE) is not Result.ENDED:
                assert model.status().cycle < start + _PATIENCE, "no end"
            end = model.status().cycle
            while model.read_register(Management.STATUS, _PATIENCE)[1] >> CoreStatus.SCRUBBING & 1:
                assert model.status().cycle < end + _PATIENCE, "no end of the scrub"
            yield bool(host[_ROWS * config.size :].any()), model.status().cycle - start
