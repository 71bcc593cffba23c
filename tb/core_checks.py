"""The checks that the test suite makes with programs on the simulated core, for scripts that modify or observe it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Event
from openmxu.arch.isa import Instruction
from openmxu.device import DeviceError, DeviceFault, Snapshot
from openmxu.sim.interpreter import Interpreter
from tb.directed.boundary_cases import check_most_tiles, check_numbers_of_tiles, long_windows
from tb.directed.checks.addresses import check_high_addresses, check_registers
from tb.directed.checks.progress import check_progress
from tb.directed.checks.resets import check_resets
from tb.directed.checks.scrubs import check_clear, check_registers_after_scrub
from tb.directed.checks.slots import check_slots
from tb.directed.checks.wide import check_strides
from tb.directed.cycle_counts import MEASUREMENTS, expected
from tb.directed.directed_cases import DIRECTED, directed
from tb.lockstep import Case, cases, run_case
from tb.lockstep.campaign import DEFAULT_COUNT, DEFAULT_SEED, VERILATED, verilated_device

__all__ = ["Check", "Options", "checks", "configurations"]

Options = Mapping[str, object]
"""Additional keyword arguments for the :class:`VerilatedDevice` of a check."""


@dataclass(frozen=True)
class Check:
    """One check of the suite.

    Attributes
    ----------
    name
        Name for reports.
    run
        Runs the check on devices made with the given options. Returns one line about the failure, or ``None``.
    """

    name: str
    run: Callable[[Options], str | None]


def configurations(sizes: Iterable[int]) -> list[Config]:
    """The configurations of the suite's lockstep tests that have one of the sizes."""
    return [config for config in VERILATED if config.size in sizes]


def checks(config: Config) -> list[Check]:
    """All checks with programs on the simulated core of a configuration; quick ones first."""
    random = (case for case in cases(DEFAULT_SEED, DEFAULT_COUNT, VERILATED) if case.config == config)
    every = [
        _recorded("layers", config),
        *(_case_check(f"lockstep seed {case.seed}", case) for case in random),
        _check("registers", check_registers, config),
        _check("progress", check_progress, config),
    ]
    if config in DIRECTED:
        every += [
            _check("high addresses", check_high_addresses, config),
            _check("numbers of tiles", check_numbers_of_tiles, config),
            _check("strides", check_strides, config),
            *(_recorded(name, config) for name in MEASUREMENTS if name != "layers"),
            *(_case_check(name, case) for name, case in directed(config, 1)),
            _check("registers after a scrub", check_registers_after_scrub, config),
            _check("scrub", check_clear, config),
            _check("resets", check_resets, config),
            _check("slots", check_slots, config),
            _case_check("long windows", long_windows(config, 1)),
        ]
        # The counters of tiles are the same for any size, and a large array takes minutes for so many.
        every += [_check("most tiles", check_most_tiles, config)] * (config != DIRECTED[-1])
    return every


@dataclass(frozen=True)
class _Step:
    """State of the interpreter after a call of ``execute``."""

    outcome: list[Event] | DeviceFault
    host_memory: NDArray[np.uint8]
    snapshot: Snapshot


class _Replay:
    """Replays the recorded results of the interpreter for a case, as the reference for several runs of it."""

    def __init__(self, steps: list[_Step]) -> None:
        self._steps = iter(steps)

    def execute(
        self, program: Iterable[Instruction], host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]
    ) -> list[Event]:
        self._step = next(self._steps)
        host_memory[:] = self._step.host_memory
        if isinstance(self._step.outcome, DeviceFault):
            raise self._step.outcome
        return self._step.outcome

    def snapshot(self) -> Snapshot:
        return self._step.snapshot

    @property
    def counters(self) -> dict:
        return {}

    def close(self) -> None:
        pass


def _record(case: Case) -> list[_Step]:
    steps, device, host = [], Interpreter(case.config), case.host_memory.copy()
    for program in case.executions():
        try:
            outcome = device.execute(program, host, case.weight_memory)
        except DeviceFault as fault:
            outcome = fault.with_traceback(None)
        steps.append(_Step(outcome, host.copy(), device.snapshot()))
    return steps


def _case_check(name: str, case: Case) -> Check:
    return Check(name, functools.partial(_lockstep, case, _record(case)))


def _lockstep(case: Case, steps: list[_Step], options: Options) -> str | None:
    try:
        with verilated_device(case, **options) as device:
            mismatch = run_case(case, device, _Replay(steps))
    except DeviceError as error:
        return f"{type(error).__name__}: {error}"
    return None if mismatch is None else str(mismatch)


def _check(name: str, function: Callable, *arguments: object) -> Check:
    return Check(name, functools.partial(_raises, function, *arguments))


def _recorded(name: str, config: Config) -> Check:
    """A check that a measurement gives what is recorded."""
    return _check(f"recorded {name}", _compare, MEASUREMENTS[name], config, expected(config)[name])


def _compare(measure: Callable, config: Config, known: dict, options: Options) -> None:
    measured = measure(config, options)
    for name, value in measured.items():
        assert value == known[name], f"{name}: cycles differ from the expected ones"


def _raises(function: Callable, *arguments: object) -> str | None:
    """The message of an exception raised by ``function``, whose last argument must be the options; or ``None``."""
    try:
        function(*arguments)
    except (AssertionError, DeviceError) as error:
        return f"{type(error).__name__}: {error}"
    return None
