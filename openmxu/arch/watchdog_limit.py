"""Limits for a watchdog: more cycles without progress than the longest instruction of a program needs."""

from __future__ import annotations

from collections.abc import Iterable

from openmxu.arch.config import Config
from openmxu.arch.effects import OUTPUT_BYTES
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Register

__all__ = ["WatchdogLimit"]

_LEAST = 50_000
_CYCLES_PER_VALUE = 256
"""Upper bound for an activation unit that computes one value at a time, bit by bit."""

_MOST = 1 << 62
"""More cycles than any run takes; the harness can still count them."""


class WatchdogLimit:
    """Computes limits for the programs of one device.

    Parameters
    ----------
    config
        Sizes of the core.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._positions = 1

    def cycles(self, program: Iterable[Instruction]) -> int:
        """An upper bound for the cycles that an instruction of ``program`` works without a transfer.

        The longest is a pooling Activate: it makes no visible progress before its last result.
        """
        config = self._config
        pooled = 0
        for instruction in program:
            opcode = instruction.word & 0xFF
            if opcode == Opcode.SET_CONFIGURATION and instruction["register"] == Register.POOLING_WINDOW:
                window = REGISTERS[Register.POOLING_WINDOW].unpack(instruction["value"])
                # Registers keep their values: the largest window of any program counts.
                self._positions = max(self._positions, window["height"] * window["width"])
            elif opcode == Opcode.ACTIVATE and instruction["pooling"]:
                pooled = max(pooled, min(instruction["rows"], config.unified_buffer_rows))
        rows = max(config.accumulator_rows, config.unified_buffer_rows)
        if config.features.is_sequential:
            return max(_LEAST, _CYCLES_PER_VALUE * rows * config.size)
        results = max(OUTPUT_BYTES.values()) * max(rows, pooled * self._positions)
        return min(max(_LEAST, 2 * results * config.column_groups, 8 * config.tile_bytes), _MOST)
