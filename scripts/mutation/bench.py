"""Runs every fault through the checks, each in a process that may crash or never end."""

from __future__ import annotations

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

CPU_SECONDS = 150
"""Processor time in seconds after which a check counts as a simulation that never ends; no check takes half as much."""

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
    jobs: int,
    on_verdict: Callable[[Verdict], None],
) -> list[Verdict]:
    """Run the faults ``mutants``, ``jobs`` at a time; the verdicts in their order.

    ``on_verdict`` is called for each as soon as it is known.
    """
    verdicts: dict[int, Verdict] = {}
    waiting = list(reversed(mutants))
    running: dict[int, tuple[Mutant, multiprocessing.Process, Connection]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            receiver, sender = _CONTEXT.Pipe(duplex=False)
            process = _CONTEXT.Process(target=_run_one, args=(planted, checks, mutant.number, sender))
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


def _run_one(planted: Planted, checks: Sequence[Check], number: int, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = {"design": planted.design, "fault": number}
    for index, check in enumerate(checks):
        sender.send((index, None))
        limit = int(time.process_time()) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
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
