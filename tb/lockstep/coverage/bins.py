"""Declared bins, their hits, and reports of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from openmxu.arch.config import Config
from openmxu.arch.isa import Opcode

__all__ = ["Bin", "Coverage", "have_load_weights"]

Bin = tuple[str, str]
"""Name of a group, and name of a bin in it."""


def have_load_weights(configs: Iterable[Config]) -> bool:
    """Whether a core of any of the configurations executes Load_Weights."""
    return any(config.features.has(Opcode.LOAD_WEIGHTS) for config in configs)


class Coverage:
    """Counts hits of bins that must be declared before.

    Parameters
    ----------
    groups
        Names of the bins in each group.
    """

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._hits: dict[str, dict[str, int]] = {group: dict.fromkeys(bins, 0) for group, bins in groups.items()}

    def add(self, hits: Mapping[Bin, int]) -> None:
        """Count hits.

        Raises
        ------
        KeyError
            A bin is not declared, so the declarations are incomplete.
        """
        for (group, name), count in hits.items():
            if name not in self._hits.get(group, {}):
                raise KeyError(f"coverage group {group!r} has no bin {name!r}")
            self._hits[group][name] += count

    def hits(self, group: str) -> Mapping[str, int]:
        """The bins of a group with their hits."""
        return self._hits[group]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(self._hits)

    def unreached(self) -> list[Bin]:
        """Bins without a hit."""
        return [(group, name) for group, bins in self._hits.items() for name, count in bins.items() if count == 0]

    def summary(self) -> str:
        """One line with the number of bins reached."""
        total = sum(len(bins) for bins in self._hits.values())
        return f"coverage: {total - len(self.unreached())} of {total} bins in {len(self._hits)} groups reached"

    def as_json(self) -> str:
        """All bins with their hits."""
        return json.dumps(self._hits, indent=1, ensure_ascii=False) + "\n"

    def as_markdown(self, title: str) -> str:
        """A readable report: an overview, the bins that were not reached, and all bins with their hits."""
        lines = [
            f"# {title}",
            "",
            self.summary(),
            "",
            "| group | bins | reached | fewest hits |",
            "| --- | --- | --- | --- |",
        ]
        for group, bins in self._hits.items():
            counts = Counter(bins.values())
            lines.append(f"| {group} | {len(bins)} | {len(bins) - counts[0]} | {min(bins.values(), default=0)} |")
        unreached = self.unreached()
        lines += ["", "## Not reached", "", *([f"- {group}: {name}" for group, name in unreached] or ["None."])]
        for group, bins in self._hits.items():
            lines += ["", f"## {group}", "", "| bin | hits |", "| --- | --- |"]
            lines += [f"| {name} | {count} |" for name, count in bins.items()]
        return "\n".join(lines) + "\n"
