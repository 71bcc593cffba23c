"""LSTM and GRU in float, step by step, with the statistics that quantizing them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellWeights", "Statistics", "observe_gru", "observe_lstm"]

_LARGEST = 16.0
_BINS = 1024


@dataclass
class Magnitudes:
    """A histogram of magnitudes; those above 16 count as 16."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))

    def add(self, values: NDArray[np.float32]) -> None:
        """Count some more values."""
        bins = (np.abs(values) * (_BINS / _LARGEST)).astype(np.int64)
        self.counts += np.bincount(np.minimum(bins, _BINS - 1).reshape(-1), minlength=_BINS)

    def quantile(self, share: float) -> float:
        """The magnitude that this share of all magnitudes does not exceed."""
        wanted = share * self.counts.sum()
        return float((np.searchsorted(np.cumsum(self.counts), wanted) + 1) * (_LARGEST / _BINS))


@dataclass
class Statistics:
    """Statistics of all steps of all sequences seen.

    Attributes
    ----------
    sigmoid, memory, tanh
        Arguments of the functions; ``memory`` is for the gate that decides what the cell remembers.
    hidden, cell
        Largest magnitude of the hidden state and of the cell state.
    """

    sigmoid: Magnitudes = field(default_factory=Magnitudes)
    memory: Magnitudes = field(default_factory=Magnitudes)
    tanh: Magnitudes = field(default_factory=Magnitudes)
    hidden: float = 0.0
    cell: float = 0.0


@dataclass(frozen=True)
class CellWeights:
    """W and R of one direction, (gates · units, …), and B as Wb and Rb, (gates · units,) each."""

    weights: NDArray[np.float32]
    recurrence: NDArray[np.float32]
    bias: NDArray[np.float32]
    recurrence_bias: NDArray[np.float32]

    @property
    def units(self) -> int:
        """Columns of R."""
        return self.recurrence.shape[1]


def observe_lstm(
    cell: CellWeights, x: NDArray[np.float32], initial: tuple[NDArray[np.float32], ...], statistics: Statistics
) -> None:
    """Run an LSTM on ``x`` (steps, batch, inputs) from hidden and cell state (batch, units); gates in ONNX's order."""
    hidden, memory = initial
    statistics.cell = max(statistics.cell, float(np.abs(memory).max()))
    statistics.hidden = max(statistics.hidden, float(np.abs(hidden).max()))
    bias = cell.bias + cell.recurrence_bias
    for step in x:
        sums = step @ cell.weights.T + hidden @ cell.recurrence.T + bias
        gates, candidate = sums[:, : 3 * cell.units], sums[:, 3 * cell.units :]
        statistics.sigmoid.add(gates[:, : 2 * cell.units])
        statistics.memory.add(gates[:, 2 * cell.units :])
        statistics.tanh.add(candidate)
        i, o, f = np.split(_sigmoid(gates), 3, axis=1)
        memory = f * memory + i * np.tanh(candidate)
        statistics.tanh.add(memory)
        hidden = o * np.tanh(memory)
        statistics.hidden = max(statistics.hidden, float(np.abs(hidden).max()))
        statistics.cell = max(statistics.cell, float(np.abs(memory).max()))


def observe_gru(
    cell: CellWeights,
    x: NDArray[np.float32],
    initial: tuple[NDArray[np.float32], ...],
    statistics: Statistics,
    linear_before_reset: bool,
) -> None:
    """Run a GRU on ``x`` (steps, batch, inputs) from its state (batch, units), in ONNX's order of gates."""
    (hidden,) = initial
    statistics.hidden = max(statistics.hidden, float(np.abs(hidden).max()))
    split = 2 * cell.units
    candidate: Callable[[NDArray, NDArray], NDArray]
    if linear_before_reset:

        def candidate(hidden: NDArray, reset: NDArray) -> NDArray:
            return reset * (hidden @ cell.recurrence[split:].T + cell.recurrence_bias[split:])
    else:

        def candidate(hidden: NDArray, reset: NDArray) -> NDArray:
            return (reset * hidden) @ cell.recurrence[split:].T + cell.recurrence_bias[split:]

    for step in x:
        ahead = step @ cell.weights.T + cell.bias
        gates = ahead[:, :split] + hidden @ cell.recurrence[:split].T + cell.recurrence_bias[:split]
        statistics.memory.add(gates[:, : cell.units])
        statistics.sigmoid.add(gates[:, cell.units :])
        z, r = np.split(_sigmoid(gates), 2, axis=1)
        total = ahead[:, split:] + candidate(hidden, r)
        statistics.tanh.add(total)
        hidden = z * hidden + (1 - z) * np.tanh(total)
        statistics.hidden = max(statistics.hidden, float(np.abs(hidden).max()))


def _sigmoid(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return 0.5 * (1 + np.tanh(0.5 * values))
