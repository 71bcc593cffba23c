"""Arguments why faults that the suite does not notice are acceptable, one for each fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.mutation.netlist import Mutant

__all__ = ["ARGUMENTS", "Argument", "Arguments"]

ARGUMENTS = Path(__file__).with_name("survivors.json")


@dataclass(frozen=True)
class Argument:
    """An argument about a fault.

    Attributes
    ----------
    seed, size, unit, place
        Identify the fault: the seed and array size with which it is planted, and its place.
    has_effect
        Whether a program of any length leaves other results, takes other cycles or counts otherwise; also set if that
        is not known.
    why
        The reason why it has no effect, or why no check notices it.
    """

    seed: int
    size: int
    unit: str
    place: str
    has_effect: bool
    why: str


class Arguments:
    """The arguments of the file, to compare with the survivors of a run."""

    def __init__(self, path: Path = ARGUMENTS) -> None:
        self._known = {
            (argument.size, argument.place): argument for argument in (Argument(**entry) for entry in _read(path))
        }

    def of(self, size: int, mutant: Mutant) -> Argument | None:
        """The argument about a fault."""
        return self._known.get((size, mutant.place))

    def stale(self, seed: int, planted: Iterable[tuple[int, Mutant]], survivors: Iterable[tuple[int, Mutant]]) -> list:
        """Arguments about faults of this seed that are not planted or that are noticed."""
        alive = {(size, mutant.place) for size, mutant in survivors}
        there = {(size, mutant.place) for size, mutant in planted}
        return [
            argument
            for key, argument in self._known.items()
            if key not in alive and (key in there or argument.seed == seed)
        ]


def _read(path: Path) -> Iterator[dict]:
    yield from json.loads(path.read_text())
