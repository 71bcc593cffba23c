"""The results of the mutation bench, as text and as data."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass

from scripts.mutation.arguments import ARGUMENTS, Argument, Arguments
from scripts.mutation.bench import Verdict
from scripts.mutation.netlist import Planted

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """The results of a run.

    Attributes
    ----------
    count, seed
        The requested number of faults, and the seed.
    results
        The verdicts for each configuration.
    proved
        Array size and number of survivors that are proved to have no effect.
    arguments
        The arguments about survivors.
    """

    count: int
    seed: int
    results: list[tuple[Planted, list[Verdict]]]
    proved: set[tuple[int, int]]
    arguments: Arguments

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all configurations."""
        return [verdict for _, verdicts in self.results for verdict in verdicts]

    @property
    def share(self) -> float:
        """Share of noticed faults among all."""
        return sum(verdict.check is not None for verdict in self.verdicts) / max(1, len(self.verdicts))

    @property
    def effective_share(self) -> float:
        """Share of noticed faults among those that may have an effect, according to proofs and arguments."""
        return sum(verdict.check is not None for verdict in self.verdicts) / max(
            1, len(self.verdicts) - len(self.without_effect())
        )

    def without_effect(self) -> list[tuple[Planted, Verdict]]:
        """Survivors that are proved, or argued, to have no effect."""
        return [
            (planted, verdict)
            for planted, verdict in self.survivors()
            if self._is_proved(planted, verdict)
            or ((argument := self._argument(planted, verdict)) and not argument.has_effect)
        ]

    def unexplained(self) -> list[tuple[Planted, Verdict]]:
        """Survivors without a proof or an argument."""
        return [
            (planted, verdict)
            for planted, verdict in self.survivors()
            if not self._is_proved(planted, verdict) and not self._argument(planted, verdict)
        ]

    def stale_arguments(self) -> list[Argument]:
        """Arguments about faults that are noticed, or not planted any more."""
        planted = [(planted.config.size, verdict.mutant) for planted, verdicts in self.results for verdict in verdicts]
        survivors = [(planted.config.size, verdict.mutant) for planted, verdict in self.survivors()]
        return self.arguments.stale(self.seed, planted, survivors)

    def _is_proved(self, planted: Planted, verdict: Verdict) -> bool:
        return (planted.config.size, verdict.mutant.number) in self.proved

    def _argument(self, planted: Planted, verdict: Verdict) -> Argument | None:
        return self.arguments.of(planted.config.size, verdict.mutant)

    def _comment(self, planted: Planted, verdict: Verdict) -> str:
        if self._is_proved(planted, verdict):
            return "proved to have no effect"
        argument = self._argument(planted, verdict)
        return argument.why if argument else "nothing is known about it"

    def survivors(self) -> list[tuple[Planted, Verdict]]:
        """Faults that nothing noticed, unit by unit."""
        found = [(planted, verdict) for planted, verdicts in self.results for verdict in verdicts if not verdict.check]
        return sorted(found, key=lambda pair: pair[1].mutant.unit)

    def units(self) -> dict[str, tuple[int, int]]:
        """For each unit the numbers of its faults and of noticed ones."""
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
                    "proved": self._is_proved(planted, verdict),
                    "argument": (argument := self._argument(planted, verdict)) and argument.why,
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
                f"  {verdict.mutant.unit}, S = {planted.config.size}, {verdict.mutant.number}: {verdict.mutant}: "
                + self._comment(planted, verdict)
                for planted, verdict in survivors
            ]
        if stale := self.stale_arguments():
            lines += ["", f"{ARGUMENTS.name} has entries for faults that are detected, or not planted"]
            lines += [f"  {argument.unit}, S = {argument.size}: {argument.place}" for argument in stale]
        if unexplained := self.unexplained():
            lines += ["", f"{ARGUMENTS.name} has no entries for {len(unexplained)} of the survivors"]
        idle = len(self.without_effect())
        lines += [
            "",
            f"{noticed} of {total} mutants noticed, {self.share:.2%}; without {idle} survivors that have no effect "
            f"({len(self.proved)} of them proved), {self.effective_share:.2%}",
        ]
        return "\n".join(lines)
