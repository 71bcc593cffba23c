"""Recording: signals of the RTL that say what becomes of each instruction, and their values in each cycle of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.events import Counter

__all__ = ["PROBES", "WEIGHT_DATA_BIT", "WEIGHT_REQUEST_BIT", "Probe", "Recording"]

_Cycles = NDArray[np.int64]


@dataclass(frozen=True)
class Probe:
    """Bits of a signal that are recorded.

    Attributes
    ----------
    path
        Names of the submodules on the way down from the core and of the signal, joined by dots.
    bits
        For each recorded bit its number in the signal, and the name that it has in a :class:`Recording`.
    """

    path: str
    bits: tuple[tuple[int, str], ...]


_QUEUES = ("host_read", "host_write", "matrix", "activation")
_COUNTED = (
    *(Counter.CYCLES, Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT),
    *(Counter.RAW_STALL, Counter.INPUT_STALL),
    *(Counter.RETIRED_HOST_READ, Counter.RETIRED_HOST_WRITE, Counter.RETIRED_MATRIX, Counter.RETIRED_ACTIVATION),
    Counter.RETIRED_OTHER,
)
PROBES = (
    Probe("increments", tuple((int(counter), counter.name.lower()) for counter in _COUNTED)),
    Probe("dispatcher.queues.scoreboard.allocate", tuple((n, f"queued_{name}") for n, name in enumerate(_QUEUES))),
    Probe("dispatcher.queues.scoreboard.started", tuple((n, f"started_{name}") for n, name in enumerate(_QUEUES))),
    *(Probe(f"dispatcher.queues.queue_{name}.take", ((0, f"taken_{name}"),)) for name in _QUEUES),
    Probe("dispatcher.weight_commands.input__valid", ((0, "queued_weights"),)),
    Probe("activation_unit.sequencer.starts", ((0, "pass_starts"),)),
    Probe("activation_unit.sequencer.sequences__ready", ((0, "passes_end"),)),
)
"""Signals of a core of the profiles that execute several instructions at once.

They are increments of the counters, and for each unit: an instruction gets its slot, has nothing left to wait for, was
taken in the cycle before.
"""

_NAMES = tuple(name for probe in PROBES for _, name in probe.bits)

WEIGHT_REQUEST_BIT = len(_NAMES)
WEIGHT_DATA_BIT = WEIGHT_REQUEST_BIT + 1
"""Bits of transfers at the weight port, which the harness sees by itself."""

_BITS = {name: bit for bit, name in enumerate((*_NAMES, "weights_requested", "weights_came"))}


class Recording:
    """The values of the recorded bits in each cycle of one call of ``execute``, in the form of runs of equal cycles.

    Parameters
    ----------
    changes
        uint64, shape (runs + 1, 2): the first cycle of each run with its bits, and the cycle behind the last one.
    """

    def __init__(self, changes: NDArray[np.uint64]) -> None:
        cycles = changes[:, 0].astype(np.int64)
        self._first, self._bits = cycles[:-1], changes[:-1, 1]
        self._length = np.diff(cycles)

    def _selected(self, name: str) -> NDArray[np.bool_]:
        return (self._bits >> np.uint64(_BITS[name]) & np.uint64(1)).astype(np.bool_)

    def count(self, name: str) -> int:
        """The number of cycles in which a bit is set."""
        return int(self._length[self._selected(name)].sum())

    def cycles(self, name: str) -> _Cycles:
        """The cycles in which a bit is set."""
        return self.nth(name, np.arange(self.count(name)))

    def nth(self, name: str, numbers: _Cycles) -> _Cycles:
        """The cycles in which a bit is set for the first time (number 0), the second time, and so on."""
        chosen = self._selected(name)
        first, ends = self._first[chosen], np.cumsum(self._length[chosen])
        run = np.searchsorted(ends, numbers, side="right")
        return first[run] + numbers - (ends[run] - self._length[chosen][run])

    def runs(self, name: str) -> tuple[_Cycles, _Cycles]:
        """The first cycle, and the number of cycles, of each run in which a bit is set."""
        chosen = self._selected(name)
        return self._first[chosen], self._length[chosen]
