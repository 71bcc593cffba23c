"""A file of verdicts: number, check and fault, written as soon as they are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.fpga.errors import FlowError
from scripts.mutation.bench import Verdict
from scripts.mutation.netlist import Mutant

__all__ = ["append_verdict", "read_verdicts", "without"]

_SURVIVES = "SURVIVES"


def append_verdict(path: Path, verdict: Verdict) -> None:
    """Add a line to the file."""
    with path.open("a") as file:
        print(verdict.mutant.number, verdict.check or _SURVIVES, verdict.mutant, sep="\t", file=file)


def read_verdicts(path: Path, mutants: Sequence[Mutant]) -> list[Verdict]:
    """The verdicts on these faults, or on some of them, without their messages.

    Raises
    ------
    FlowError
        The file is missing, or has verdicts on other faults.
    """
    try:
        lines = [line.split("\t") for line in path.read_text().splitlines()]
    except FileNotFoundError:
        raise FlowError(f"{path}: no verdicts; run without --report first") from None
    checks = {(number, fault): check for number, check, fault in lines}
    wanted = {(str(mutant.number), str(mutant)): mutant for mutant in mutants}
    if checks.keys() - wanted.keys():
        raise FlowError(f"{path}: verdicts on other faults than the {len(wanted)} of these options")
    return [
        Verdict(mutant, None if checks[key] == _SURVIVES else checks[key], "")
        for key, mutant in wanted.items()
        if key in checks
    ]


def without(mutants: Sequence[Mutant], known: Sequence[Verdict]) -> list[Mutant]:
    """The faults on which there is no verdict yet."""
    numbers = {verdict.mutant.number for verdict in known}
    return [mutant for mutant in mutants if mutant.number not in numbers]
