"""The results of layers, added up by the kind of layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from openmxu.comparison import LayerResult

__all__ = ["LayerCounts"]


@dataclass
class LayerCounts:
    """Outputs of layers by the operators in them; fields as those of a :class:`LayerResult`."""

    outputs: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    ambiguous: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, layers: Iterable[LayerResult]) -> LayerCounts:
        """The counts of a network."""
        counts = cls()
        for layer in layers:
            counts.outputs[layer.kind] += layer.outputs
            counts.differing[layer.kind] += layer.differing
            counts.ambiguous[layer.kind] += layer.ambiguous
        return counts

    def add(self, other: LayerCounts) -> None:
        """Add up the counts of another network."""
        self.outputs += other.outputs
        self.differing += other.differing
        self.ambiguous += other.ambiguous
