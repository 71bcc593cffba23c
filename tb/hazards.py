"""What instructions touch and which of them must not run at the same time, the obvious way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openmxu.rtl.scoreboard import QueuedUnit, access_layout
from tb.bench import CONFIG
from tb.payloads import pack

__all__ = ["Access", "conflict", "random_access"]


@dataclass(frozen=True)
class Access:
    """The rows and bytes that an instruction touches; ``None`` for nothing.

    Attributes
    ----------
    unit
        The unit that executes it.
    unified_buffer, accumulators, host
        Ranges of rows, rows, and bytes.
    writes
        Whether it writes the unified buffer.
    """

    unit: QueuedUnit
    unified_buffer: range
    writes: bool
    accumulators: range | None = None
    host: range | None = None

    @property
    def payload(self) -> int:
        """As the scoreboard is told."""
        accumulators, host = self.accumulators or range(0), self.host or range(0)
        return pack(
            access_layout(CONFIG),
            {
                "unified_buffer": self.unified_buffer.start,
                "unified_buffer_end": self.unified_buffer.stop,
                "writes_unified_buffer": self.writes,
                "accumulators": self.accumulators is not None,
                "accumulator": accumulators.start,
                "accumulator_end": accumulators.stop,
                "host": host.start,
                "host_end": host.stop,
            },
        )


def conflict(first: Access, second: Access) -> bool:
    """Whether the order of the two matters, beyond the order in which a unit works anyway."""
    if first.unit == second.unit:
        return False
    return (
        ((first.writes or second.writes) and _overlap(first.unified_buffer, second.unified_buffer))
        or _overlap(first.accumulators, second.accumulators)
        or _overlap(first.host, second.host)
    )


def random_access(rng: np.random.Generator) -> Access:
    """Ranges small enough that some overlap, and some only touch."""
    unit = QueuedUnit(int(rng.integers(4)))

    def some(places: int) -> range:
        first, count = int(rng.integers(0, places // 2)), int(rng.integers(1, 5))
        return range(first, min(first + count, places))

    computes = unit in (QueuedUnit.MATRIX, QueuedUnit.ACTIVATION)
    loads = unit is QueuedUnit.ACTIVATION and rng.random() < 0.3
    writes = unit is QueuedUnit.HOST_READ or (unit is QueuedUnit.ACTIVATION and not loads)
    return Access(
        unit,
        some(CONFIG.unified_buffer_rows),
        writes,
        some(CONFIG.accumulator_rows) if computes and not loads else None,
        None if computes else some(64),
    )


def _overlap(first: range | None, second: range | None) -> bool:
    if first is None or second is None:
        return False
    return first.start < second.stop and second.start < first.stop
