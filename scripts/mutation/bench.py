"""Runs every fault through the checks, each in a process that may crash or never end."""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from scripts.mutation.netlist import Mutant, Planted
from tb.core_checks import Check

__all__ = ["Verdict", "run"]

_LEAST_SECONDS = 10
_SLOWER = 10
"""A check counts as a simulation that never ends if it takes so many times as long as on the netlist without a fault,
but at least so many seconds of processor time."""

_CONTEXT = multiprocessing.get_context("fork")  # the children share the checks' references


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


def run(
    planted: Planted,
    checks: Sequence[Check],
    mutants: Sequence[Mutant],
    seconds: Sequence[float],
    jobs: int,
    on_verdict: Callable[[Verdict], None],
) -> list[Verdict]:
    """Run the faults ``mutants``, ``jobs`` at a time; the verdicts in their order.

    Parameters
    ----------
    seconds
        Of processor time that each check takes on the netlist without a fault.
    on_verdict
        Called for each verdict as soon as it is known.
    """
    limits = [max(_LEAST_SECONDS, math.ceil(_SLOWER * each)) for each in seconds]
    verdicts: dict[int, Verdict] = {}
    waiting = list(reversed(mutants))
    running: dict[int, tuple[Mutant, multiprocessing.Process, Connection]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            receiver, sender = _CONTEXT.Pipe(duplex=False)
            process = _CONTEXT.Process(target=_run_one, args=(planted, checks, limits, mutant.number, sender))
            process.start()
            sender.close()
            running[process.sentinel] = mutant, process, receiver
        for sentinel in wait(list(running)):
            mutant, process, receiver = running.pop(sentinel)
            process.join()
            verdict = _verdict(mutant, process.exitcode, receiver, checks)
            receiver.close()
            verdicts[mutant.number] = verdict
            on_verdict(verdict)
    return [verdicts[mutant.number] for mutant in mutants]


def _run_one(planted: Planted, checks: Sequence[Check], limits: Sequence[int], number: int, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = {"design": planted.design, "fault": number}
    for index, (check, limit) in enumerate(zip(checks, limits, strict=True)):
        sender.send((index, None))
        end = int(time.process_time()) + limit
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        if message := check.run(options):
            sender.send((index, message))
            return
    sender.send((len(checks), None))


def _verdict(mutant: Mutant, status: int, receiver: Connection, checks: Sequence[Check]) -> Verdict:
    index, message = 0, None
    while receiver.poll():
        try:
            index, message = receiver.recv()
        except EOFError:
            break
    if index == len(checks):
        return Verdict(mutant, None, "")
    if message is None:
        how = signal.strsignal(-status) if status < 0 else f"exit status {status}"
        message = f"the simulation ended early: {how}"
    return Verdict(mutant, checks[index].name, message)
