"""Many damaged files, in child processes that may be stopped or crash."""

from __future__ import annotations

import resource
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from openmxu.cluster.children import ChildWork, run_in_child
from scripts.fuzz.cases import prepare, try_case

__all__ = ["Files", "Limits", "try_files"]


@dataclass(frozen=True)
class Limits:
    """What a file may take, and what is done with it.

    Attributes
    ----------
    seconds
        For one file.
    memory
        Bytes.
    attempt
        Tries one file, as :func:`scripts.fuzz.cases.try_case`.
    """

    seconds: float = 10
    memory: int = 8 << 30
    attempt: Callable[[str, int], str] = try_case


@dataclass(frozen=True)
class Files:
    """Some files of a kind, by their seeds."""

    kind: str
    seeds: Sequence[int]


def try_files(limits: Limits, files: Files) -> list[tuple[int, str]]:
    """The outcome for each seed: ``refused``, ``right``, or what is wrong."""
    outcomes: list[tuple[int, str]] = []
    left = list(files.seeds)
    while left:
        ending = run_in_child(_WORK, limits, Files(files.kind, left), key=f"fuzz {limits}", silence=limits.seconds)
        found = [(seed, outcome) for seed, outcome in ending.messages if outcome is not None]
        outcomes += found
        del left[: len(found)]
        if left:
            silent = f"no answer within {limits.seconds} seconds"
            ended = f"the process ended with status {ending.status}"
            outcomes.append((left.pop(0), silent if ending.status is None else ended))
    return outcomes


def _prepare(limits: Limits, files: Files) -> None:
    if limits.attempt is try_case:
        prepare(files.kind, files.seeds)


def _try(limits: Limits, files: Files, report: Callable[[Any], None]) -> None:
    """Report each file before it begins, which begins its time, and after it has ended."""
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    for seed in files.seeds:
        report((seed, None))
        try:
            report((seed, limits.attempt(files.kind, seed)))
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            report((seed, f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"))


_WORK = ChildWork(_prepare, _try)
