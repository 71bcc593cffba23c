"""Pooler: the values of a window become one, column by column."""

import numpy as np
from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import pool
from openmxu.rtl.activation.column_state import ColumnState

__all__ = ["PoolOperation", "Pooler"]


class PoolOperation(enum.Enum, shape=2):
    """What becomes of a column's pooled value: the new value, the larger of both, their sum, or what it was."""

    FIRST = 0
    MAXIMUM = 1
    SUM = 2
    HOLD = 3


class Pooler(wiring.Component):
    """Keeps a pooled value for each column of a lane; a new one comes in every cycle.

    Parameters
    ----------
    groups
        Columns of a lane.

    Members
    -------
    group
        Column of the value that comes in the next cycle; columns come in turn.
    enable
        A value comes; without it nothing changes.
    operation, value
        How it changes the column's pooled value. Sums wrap to 32 bits.
    pooled
        What the column's pooled value then is, ``latency`` cycles later.
    """

    latency = 1
    """Cycles from a value to what the pooled value becomes."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        super().__init__(
            {
                "group": In(range(groups)),
                "enable": In(1),
                "operation": In(PoolOperation),
                "value": In(signed(32)),
                "pooled": Out(signed(32)),
            }
        )

    @staticmethod
    def compute(windows: NDArray[np.int32], operation: PoolOperation) -> NDArray[np.int32]:
        """What windows (n, positions, columns) become, whose first value comes with ``FIRST``."""
        return pool(windows, np.ones(windows.shape[:2], bool), operation is PoolOperation.MAXIMUM)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.state = state = ColumnState(signed(32), self._groups)
        new = Signal(signed(32))
        stays = Signal()
        changed = Signal(signed(32))
        difference = Signal(signed(33))
        # The sum does not wait for the comparison, whose carry chain is shorter than a tree of gates.
        m.d.comb += [
            difference.eq(self.value - state.value),
            stays.eq(
                (self.operation == PoolOperation.HOLD) | ((self.operation == PoolOperation.MAXIMUM) & difference[32])
            ),
            changed.eq(self.value + Mux(self.operation == PoolOperation.SUM, state.value, 0)),
            new.eq(Mux(stays, state.value, changed)),
            state.group.eq(self.group),
            state.enable.eq(self.enable),
            state.next_value.eq(new),
        ]
        m.d.sync += self.pooled.eq(new)
        return m
