"""Plain model of the scoreboard: ranges that instructions touch, and conflicts between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openmxu.rtl.dispatch.scoreboard import QueuedUnit, access_layout
from tb.bench import CONFIG
from tb.models.payloads import pack

__all__ = ["SINGLE_BITS", "Access", "conflict", "random_access"]

SINGLE_BITS = sum(1 << field.offset for _, field in access_layout(CONFIG) if field.width == 1)
"""Mask of the single-bit members of the scoreboard's input: the flags, which are valid together with the unit."""


@dataclass(frozen=True)
class Access:
    """Rows and bytes that an instruction touches; ``None`` for nothing.

    Attributes
    ----------
    unit
        The unit that executes it.
    unified_buffer, accumulators, host
        Ranges of rows, rows, and bytes.
    writes
        Whether it writes the unified buffer.
    source, operand
        Further unified buffer rows that it reads; ``source`` excludes ``accumulators``.
    """

    unit: QueuedUnit
    unified_buffer: range
    writes: bool
    accumulators: range | None = None
    host: range | None = None
    source: range | None = None
    operand: range | None = None

    @property
    def payload(self) -> int:
        """The access as a payload for the scoreboard."""
        assert self.accumulators is None or self.source is None
        source, host = self.accumulators or self.source or range(0), self.host or range(0)
        operand = self.operand or range(0)
        return pack(
            access_layout(CONFIG),
            {
                "unified_buffer": self.unified_buffer.start,
                "unified_buffer_end": self.unified_buffer.stop,
                "writes": self.writes,
                "source": source.start,
                "source_end": source.stop,
                "uses_accumulators": self.accumulators is not None,
                "reads_source": self.source is not None,
                "operand": operand.start,
                "operand_end": operand.stop,
                "reads_operand": self.operand is not None,
                "host": host.start,
                "host_end": host.stop,
            },
        )


def conflict(older: Access, newer: Access) -> bool:
    """Whether ``newer`` must wait for ``older``. Within a unit, only the activation unit's reads may conflict."""
    written = any(older.writes and _overlap(older.unified_buffer, rows) for rows in _read_rows(newer))
    if older.unit == newer.unit:
        return older.unit is QueuedUnit.ACTIVATION and written
    return (
        written
        or any(newer.writes and _overlap(newer.unified_buffer, rows) for rows in _read_rows(older))
        or (older.writes and newer.writes and _overlap(older.unified_buffer, newer.unified_buffer))
        or _overlap(older.accumulators, newer.accumulators)
        or _overlap(older.host, newer.host)
    )


def _read_rows(access: Access) -> list[range]:
    """The ranges of the unified buffer that an instruction reads."""
    ranges = [None if access.writes else access.unified_buffer, access.source, access.operand]
    return [rows for rows in ranges if rows is not None]


def random_access(rng: np.random.Generator) -> Access:
    """A random access with ranges so small that some overlap and some are adjacent."""
    unit = QueuedUnit(int(rng.integers(4)))

    def some(places: int) -> range:
        first, count = int(rng.integers(0, places // 2)), int(rng.integers(1, 5))
        return range(first, min(first + count, places))

    computes = unit in (QueuedUnit.MATRIX, QueuedUnit.ACTIVATION)
    loads = unit is QueuedUnit.ACTIVATION and rng.random() < 0.3
    writes = unit is QueuedUnit.HOST_READ or (unit is QueuedUnit.ACTIVATION and not loads)
    activates = unit is QueuedUnit.ACTIVATION and not loads
    from_unified_buffer = activates and rng.random() < 0.5
    uses_accumulators = computes and not loads and not from_unified_buffer
    return Access(
        unit,
        some(CONFIG.unified_buffer_rows),
        writes,
        some(CONFIG.accumulator_rows) if uses_accumulators else None,
        None if computes else _transfer(some(64)),
        some(CONFIG.unified_buffer_rows) if from_unified_buffer else None,
        some(CONFIG.unified_buffer_rows) if activates and rng.random() < 0.5 else None,
    )


def _transfer(units: range) -> range:
    """Bytes of a transfer in host memory, whose ends are multiples of the alignment."""
    return range(units.start * CONFIG.host_alignment, units.stop * CONFIG.host_alignment)


def _overlap(first: range | None, second: range | None) -> bool:
    if first is None or second is None:
        return False
    return first.start < second.stop and second.start < first.stop
