"""Runs every fault through the checks, each in a child process that may crash or never end."""

from __future__ import annotations

import functools
import hashlib
import math
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from openmxu.arch.config import Config
from openmxu.cluster import Workers
from openmxu.cluster.children import ChildWork, Ending, run_in_child
from openmxu.sim.verilated import VerilatedDevice
from scripts.mutation.netlist import Mutant, Planted
from tb.core_checks import Check, checks

__all__ = ["Verdict", "run"]

_LEAST_SECONDS = 10
_SLOWER = 10
"""A check counts as a simulation that never ends if it takes so many times as long as on the netlist without a fault,
but at least so many seconds of processor time."""


@dataclass(frozen=True)
class Verdict:
    """The result for a fault.

    Attributes
    ----------
    mutant
        The fault.
    check
        The first check that noticed it; ``None`` for a survivor.
    message
        The message of that check.
    """

    mutant: Mutant
    check: str | None
    message: str


@dataclass(frozen=True)
class _Bench:
    """What all faults of a netlist share.

    Attributes
    ----------
    planted
        The netlist.
    limits
        Seconds of processor time for each check.
    digest
        Differs from bench to bench.
    """

    planted: Planted
    limits: Sequence[int]
    digest: str


def run(
    planted: Planted,
    mutants: Sequence[Mutant],
    seconds: Sequence[float],
    workers: Workers,
    on_verdict: Callable[[Verdict], None],
) -> list[Verdict]:
    """Run the faults ``mutants`` through all checks of their configuration; the verdicts in their order.

    Parameters
    ----------
    seconds
        Of processor time that each check takes on the netlist without a fault.
    on_verdict
        Called for each verdict as soon as it is known.
    """
    limits = [max(_LEAST_SECONDS, math.ceil(_SLOWER * each)) for each in seconds]
    content = hashlib.sha256(planted.files.netlist.encode()).hexdigest()
    bench = _Bench(planted, limits, f"mutation {planted.config.fingerprint} {limits} {content}")
    verdicts: dict[int, Verdict] = {}
    for number, verdict in workers.completed(_judge, mutants, bench):
        verdicts[number] = verdict
        on_verdict(verdict)
    return [verdicts[number] for number in range(len(mutants))]


def _judge(bench: _Bench, mutant: Mutant) -> Verdict:
    return _verdict(mutant, run_in_child(_WORK, bench, mutant.number, key=bench.digest))


@functools.cache
def _checks(config: Config) -> list[Check]:
    """All children share the checks' references."""
    return checks(config)


def _prepare(bench: _Bench, number: int) -> None:
    """Compute the references, and build the model unless this machine has it, neither of which has a time limit."""
    # A child that finds this out ends with an exception, as it would if it noticed the fault.
    if len(_checks(bench.planted.config)) != len(bench.limits):
        raise RuntimeError(f"{len(_checks(bench.planted.config))} checks have {len(bench.limits)} limits")
    VerilatedDevice(bench.planted.config, design=bench.planted.design).close()


def _run_checks(bench: _Bench, number: int, report: Callable[[Any], None]) -> None:
    """Report the name of each check before it begins, and the message of the one that fails."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = {"design": bench.planted.design, "fault": number}
    for check, limit in zip(_checks(bench.planted.config), bench.limits, strict=True):
        report((check.name, None))
        end = int(time.process_time()) + limit
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        if message := check.run(options):
            report((check.name, message))
            return
    report((None, ""))


_WORK = ChildWork(_prepare, _run_checks)


def _verdict(mutant: Mutant, ending: Ending) -> Verdict:
    name, message = ending.messages[-1] if ending.messages else ("the first check", None)
    if message is None:
        status = ending.status or 0
        how = signal.strsignal(-status) if status < 0 else f"exit status {status}"
        message = f"the simulation ended early: {how}"
    return Verdict(mutant, name, message)
