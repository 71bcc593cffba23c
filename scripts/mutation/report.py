"""What the mutation bench found, as text and as data."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass

from scripts.mutation.bench import Verdict
from scripts.mutation.netlist import Planted

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """All verdicts of a run.

    Attributes
    ----------
    count, seed
        What was asked for.
    results
        The verdicts for each configuration.
    proved
        Size and number of survivors that are proved to have no effect.
    """

    count: int
    seed: int
    results: list[tuple[Planted, list[Verdict]]]
    proved: set[tuple[int, int]]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all configurations."""
        return [verdict for _, verdicts in self.results for verdict in verdicts]

    @property
    def share(self) -> float:
        """Noticed faults among all."""
        return sum(verdict.check is not None for verdict in self.verdicts) / max(1, len(self.verdicts))

    @property
    def effective_share(self) -> float:
        """Noticed faults among those that are not proved to have no effect."""
        return sum(verdict.check is not None for verdict in self.verdicts) / max(
            1, len(self.verdicts) - len(self.proved)
        )

    def survivors(self) -> list[tuple[Planted, Verdict]]:
        """Faults that nothing noticed, unit by unit."""
        found = [(planted, verdict) for planted, verdicts in self.results for verdict in verdicts if not verdict.check]
        return sorted(found, key=lambda pair: pair[1].mutant.unit)

    def units(self) -> dict[str, tuple[int, int]]:
        """For each unit its faults, and how many of them were noticed."""
        planted = Counter(verdict.mutant.unit for verdict in self.verdicts)
        noticed = Counter(verdict.mutant.unit for verdict in self.verdicts if verdict.check)
        return {unit: (planted[unit], noticed[unit]) for unit in sorted(planted)}

    def as_dict(self) -> dict:
        """Everything, for JSON."""
        return {
            "seed": self.seed,
            "share": self.share,
            "effective_share": self.effective_share,
            "units": {unit: {"mutants": all, "noticed": noticed} for unit, (all, noticed) in self.units().items()},
            "mutants": [
                {
                    "size": planted.config.size,
                    **dataclasses.asdict(verdict.mutant),
                    "check": verdict.check,
                    "message": verdict.message,
                    "proved": (planted.config.size, verdict.mutant.number) in self.proved,
                }
                for planted, verdicts in self.results
                for verdict in verdicts
            ],
        }

    def __str__(self) -> str:
        lines = [f"{'unit':<26}{'mutants':>8}{'noticed':>9}"]
        lines += [f"{unit:<26}{all:>8}{noticed:>9}" for unit, (all, noticed) in self.units().items()]
        total = len(self.verdicts)
        noticed = sum(verdict.check is not None for verdict in self.verdicts)
        survivors = self.survivors()
        if survivors:
            lines += ["", "survivors"]
            lines += [
                f"  {verdict.mutant.unit}, S = {planted.config.size}, {verdict.mutant.number}: {verdict.mutant}"
                + (", proved to have no effect" if (planted.config.size, verdict.mutant.number) in self.proved else "")
                for planted, verdict in survivors
            ]
        lines += [
            "",
            f"{noticed} of {total} mutants noticed, {self.share:.2%}; "
            f"without {len(self.proved)} that are proved to have no effect, {self.effective_share:.2%}",
        ]
        return "\n".join(lines)
