"""Campaigns of many random cases over several configurations, for the script and the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openmxu.arch.config import Config
from openmxu.sim.interpreter import Interpreter
from tb.lockstep.case import Case
from tb.lockstep.comparison import LockstepDevice, Mismatch, run_case
from tb.lockstep.coverage import Bin, observe
from tb.lockstep.programs.environment import environment
from tb.lockstep.programs.generator import generate
from tb.lockstep.report import report
from tb.lockstep.shrinker import shrink

__all__ = [
    "DEFAULT_COUNT",
    "DEFAULT_SEED",
    "VERILATED",
    "DeviceFactory",
    "Failure",
    "Result",
    "cases",
    "check",
    "configurations",
    "first_failure",
    "run_seed",
    "verilated_device",
]

DeviceFactory = Callable[[Case], LockstepDevice]
"""Makes a device for a case, in the state after power-on; equal cases get equal stalls."""

FAULT_PROBABILITY = 0.35
_LENGTHS = (8, 30, 80)


@dataclass(frozen=True)
class Failure:
    """A case with different results on the two devices, after shrinking.

    Attributes
    ----------
    case, mismatch
        The shrunk case and the difference that it shows.
    report
        Report as text; the lines of the program are valid assembly.
    """

    case: Case
    mismatch: Mismatch
    report: str


@dataclass(frozen=True)
class Result:
    """The result of one case; ``hits`` are the bins of the functional coverage that it reaches."""

    seed: int
    config: Config
    instructions: int
    faults: int
    hits: Counter[Bin]
    failure: Failure | None


def configurations(size: int) -> tuple[Config, ...]:
    """Configurations of one array size that cover different lanes, depths, banks and bus widths.

    Memories are small, so that programs reach both ends of them. All but one have the whole instruction set.
    """
    base = Config(
        profile="full", size=size, unified_buffer_rows=256, accumulator_rows=64, parameter_sets=4, activation_lanes=1
    )
    return (
        base.replace(
            profile="standard",
            activation_lanes=max(1, size // 4),
            host_data_bytes=8,
            weight_data_bytes=8,
        ),
        base.replace(
            activation_lanes=size,
            unified_buffer_rows=40,
            unified_buffer_banks=4,
            accumulator_rows=10,
            weight_fifo_tiles=2,
            weight_queue_depth=1,
            command_queue_depth=2,
            parameter_sets=1,
            host_data_bytes=4,
            weight_data_bytes=16,
        ),
        base.replace(
            activation_lanes=1,
            unified_buffer_rows=100,
            unified_buffer_banks=1,
            accumulator_rows=36,
            weight_fifo_tiles=3,
            weight_queue_depth=3,
            command_queue_depth=8,
            parameter_sets=3,
            host_data_bytes=16,
            weight_data_bytes=4,
        ),
        base.replace(
            activation_lanes=size // 2,
            unified_buffer_rows=200,
            accumulator_rows=100,
            weight_fifo_tiles=8,
            weight_queue_depth=8,
            command_queue_depth=16,
            parameter_sets=6,
            host_data_bytes=32,
            weight_data_bytes=64,
        ),
    )


VERILATED = [configurations(2)[0], configurations(4)[3], configurations(8)[1], configurations(16)[2]]
"""Configurations of the test suite: one for each size, because each needs a separate build; scripts/lockstep.py runs
all configurations. Those here have enough rows in the unified buffer for a table."""

DEFAULT_SEED = 1
DEFAULT_COUNT = 60
"""Seed and number of random programs in the test suite."""


def cases(seed: int, count: int, configs: Sequence[Config]) -> Iterator[Case]:
    """``count`` cases with the seeds ``seed``, ``seed + 1``, …, which cycle through ``configs``.

    A case is determined by seed and configuration: ``cases(case.seed, 1, [case.config])`` reproduces it.
    """
    for number in range(count):
        case_seed = seed + number
        length = int(np.random.default_rng((case_seed, 0)).choice(_LENGTHS, p=[0.3, 0.5, 0.2]))
        yield generate(configs[number % len(configs)], case_seed, length, fault_probability=FAULT_PROBABILITY)


def verilated_device(case: Case, **options: Any) -> LockstepDevice:
    """A Verilated device for ``case``, with the stalls that its seed determines; ``options`` are further arguments."""
    # Imported here because nothing else in this module needs Amaranth or Verilator.
    from openmxu.sim.verilated import VerilatedDevice
    from openmxu.sim.verilator.library import Port

    surroundings = environment(case.seed)
    return VerilatedDevice(
        case.config,
        seed=case.seed,
        stall_probability=surroundings.probability,
        stall_cycles=surroundings.cycles,
        stalled_ports=[Port[name] for name in surroundings.streams],
        memory_latency=surroundings.latency,
        **options,
    )


def check(case: Case, make_device: DeviceFactory) -> Failure | None:
    """Run ``case`` on a new device and a new interpreter; if the results differ, shrink it and report."""
    found = _mismatch(case, make_device)
    if found is None:
        return None
    short = shrink(case, lambda candidate: _mismatch(candidate, make_device) is not None, attempts=600)
    mismatch = _mismatch(short, make_device)
    assert mismatch is not None, "shrinking keeps a mismatch"
    return Failure(short, mismatch, report(short, mismatch, found, len(case.instructions)))


def run_seed(shared: None, work: tuple[int, Config]) -> Result:
    """Run the case of a seed and a configuration on the Verilated device, as workers do it."""
    seed, config = work
    (case,) = cases(seed, 1, [config])
    failure = check(case, verilated_device)
    return Result(seed, config, len(case.instructions), len(case.faults()), observe(case), failure)


def first_failure(
    all_cases: Iterable[Case], make_device: DeviceFactory, *, done: Callable[[Case], None] = lambda case: None
) -> Failure | None:
    """The first of the cases that fails, after shrinking; calls ``done`` after each that passes."""
    for case in all_cases:
        if failure := check(case, make_device):
            return failure
        done(case)
    return None


def _mismatch(case: Case, make_device: DeviceFactory) -> Mismatch | None:
    device = make_device(case)
    try:
        return run_case(case, device, Interpreter(case.config))
    finally:
        device.close()
