"""Pooler: reduces the values of a window to one, column by column."""

import numpy as np
from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from openmxu.arch.numerics import pool
from openmxu.rtl.activation.column_state import ColumnState
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["PoolOperation", "Pooler"]


class PoolOperation(enum.Enum, shape=2):
    """A column's next pooled value: the new value, the larger of both, their sum, or the old pooled value."""

    FIRST = 0
    MAXIMUM = 1
    SUM = 2
    HOLD = 3


class Pooler(wiring.Component):
    """Keeps a pooled value for each column of a lane; accepts a new value in every cycle.

    Parameters
    ----------
    groups
        Columns of a lane.

    Members
    -------
    enable
        There is a value, for the columns in turn; without it nothing changes.
    operation, value
        The value, and how it changes the column's pooled value. Sums wrap to 32 bits.
    pooled
        The column's new pooled value, ``latency`` cycles later.
    """

    latency = 2
    """Cycles from a value to the pooled value that includes it."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        super().__init__(
            {
                "enable": In(1),
                "operation": In(PoolOperation),
                "value": In(signed(32)),
                "pooled": Out(signed(32)),
            }
        )

    @staticmethod
    def compute(windows: NDArray[np.int32], operation: PoolOperation) -> NDArray[np.int32]:
        """The pooled values of windows (n, positions, columns), whose first value comes with ``FIRST``."""
        return pool(windows, np.ones(windows.shape[:2], bool), operation is PoolOperation.MAXIMUM)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # One cycle compares, the next one selects or adds; the result is stored when the next value comes.
        m.submodules.state = state = ColumnState(signed(32), self._groups)
        value = Signal(signed(32), reset_less=True)
        takes_value = Signal(reset_less=True)
        takes_state = Signal(reset_less=True)
        # With their sign bits inverted, signed numbers compare like unsigned ones.
        new_value, old_value = (Cat(value[:-1], ~value[-1]) for value in (self.value, state.coming))
        keeps = (self.operation == PoolOperation.HOLD) | (
            (self.operation == PoolOperation.MAXIMUM) & is_less(new_value, old_value)
        )
        with m.If(self.enable):
            m.d.sync += [
                value.eq(self.value),
                takes_value.eq(~keeps),
                takes_state.eq(keeps | (self.operation == PoolOperation.SUM)),
            ]
        new = chained_sum(
            m,
            platform,
            "new",
            [value, state.value, takes_value, takes_state],
            # At least one of the two is taken; the term with `~takes_state` makes the function fit into a carry cell.
            first=lambda value, state, takes_value, takes_state: value & (takes_value | (state & ~takes_state)),
            second=lambda value, state, takes_value, takes_state: state & takes_state,
        )
        m.d.comb += [state.enable.eq(self.enable), state.next_value.eq(new)]
        m.d.sync += self.pooled.eq(new)
        return m
