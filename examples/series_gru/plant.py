"""Two weeks of measurements of a plant that does not exist: 20 signals every quarter of an hour, three alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALARMS", "SIGNALS", "STEPS", "measurements"]

SIGNALS = 20
STEPS = 1344
"""Quarters of an hour in two weeks."""

ALARMS = 3
_DAY = 96
_MEMORY = 150.0
"""Steps after which a part of the plant has forgotten two thirds of its load."""


def measurements(count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Random plants and their alarms.

    The signals are daily cycles, slow drifts, noise and short bursts. Each of three parts of the plant sums up what
    three of its signals say together, forgets slowly, and is in alarm while the sum is above 0.

    Returns
    -------
    Signals, float32 (count, 1344, 20), about -3 to 3; alarms of every step, float32 (count, 1344, 3), 0 or 1.
    """
    rule = np.random.default_rng(7)
    mixing = rule.normal(0, 0.6, (6, SIGNALS))
    groups = rule.permutation(SIGNALS)[: 3 * ALARMS].reshape(ALARMS, 3)
    random = np.random.default_rng(seed)
    time = np.arange(STEPS)
    phases, speeds = random.uniform(0, 2 * np.pi, (count, 1, 6)), random.uniform(0.5, 3, (count, 1, 6))
    cycles = np.sin(2 * np.pi * speeds * time[:, np.newaxis] / _DAY + phases)
    drift = np.cumsum(random.normal(0, 0.04, (count, STEPS, SIGNALS)), axis=1)
    bursts = (random.random((count, STEPS, SIGNALS)) < 0.01) * random.normal(0, 2, (count, STEPS, SIGNALS))
    noise = random.normal(0, 0.2, (count, STEPS, SIGNALS))
    signals = np.tanh((cycles @ mixing + drift + bursts + noise) / 2) * 3
    signals = signals.astype(np.float32)
    loads = np.zeros((count, ALARMS))
    alarms = np.zeros((count, STEPS, ALARMS), np.float32)
    for step in range(STEPS):
        first, second, third = (signals[:, step, groups[:, index]] for index in range(3))
        loads += (np.tanh(first * second / 2) + 0.5 * third) / _MEMORY - loads / _MEMORY
        alarms[:, step] = loads > 0
    return signals, alarms
