"""Recordings of the systolic array: every register of its elements in each cycle of a product, from the RTL."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Module
from amaranth.sim import Simulator, SimulatorContext
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup
from openmxu.rtl.weights.weight_shifter import WeightShifter
from openmxu.sim.waveform import Waveform

__all__ = ["MOST_ROWS", "ArrayRecording", "record_product"]

MOST_ROWS = 128
"""Most cycles in which rows enter the array, or wait for a tile that is being loaded."""

_OPERANDS = np.iinfo(np.int8)


@dataclass(frozen=True)
class ArrayRecording:
    """A product of matrices as the array computes it, from the cycle in which the first weight reaches its edge.

    The product is cut into passes, one for each S × S tile of ``right``: all rows of ``left`` enter while one tile is
    in use. Row ``number`` of the recording is row ``number % M`` of pass ``number // M``. Tiles that add to the same
    columns of the product follow each other. C is the number of cycles, and registers are shown as they are during a
    cycle, before the clock's edge that ends it.

    Attributes
    ----------
    left, right
        The matrices, (M, K) and (K, N).
    entering
        Number of the row whose lane 0 is at the array's edge, -1 for none: (C,).
    edge_activations, edge_weights
        What is at the array's left edge, a lane for each row of elements, and at its upper edge, a lane for each
        column: (C, S). Lanes without a row or a weight hold anything.
    activations, weights, partial_sums
        Registers of the element in row k and column n, (C, S, S): the activation that is being multiplied, the weight
        in use, and the sum that leaves downwards.
    next_weights
        Its weight for the next tile.
    swapped, shifted
        Whether ``weights`` or ``next_weights`` were written at the beginning of this cycle: (C, S, S).
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    entering: NDArray[np.int64]
    edge_activations: NDArray[np.int64]
    edge_weights: NDArray[np.int64]
    activations: NDArray[np.int64]
    weights: NDArray[np.int64]
    partial_sums: NDArray[np.int64]
    next_weights: NDArray[np.int64]
    swapped: NDArray[np.bool_]
    shifted: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """S."""
        return self.weights.shape[1]

    @property
    def cycles(self) -> int:
        """C."""
        return len(self.weights)

    @property
    def tiles(self) -> NDArray[np.int64]:
        """The tiles of the passes, filled up with zeros: (passes, S, S)."""
        return _tiles(self.right, self.size)

    @property
    def blocks(self) -> NDArray[np.int64]:
        """For each pass the columns of the product that it adds to, in blocks of S."""
        return np.arange(len(self.tiles)) // -(-len(self.right) // self.size)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of the rows whose activations the elements hold, -1 for none: (C, S, S)."""
        return self._passing(1)

    @property
    def sum_rows(self) -> NDArray[np.int64]:
        """Numbers of the rows that the partial sums belong to, -1 for none: (C, S, S)."""
        return self._passing(SystolicArray.latency(_config(self.size)) - self.size + 1)

    @property
    def product(self) -> NDArray[np.int64]:
        """The sums that leave the array, added up as the accumulators do: (M, N)."""
        rows, columns = len(self.left), self.right.shape[1]
        total = np.zeros((rows, -(-columns // self.size) * self.size), np.int64)
        leaving = self.sum_rows[:, -1]
        for cycle, column in np.argwhere(leaving >= 0):
            number = leaving[cycle, column]
            block = self.blocks[number // rows]
            total[number % rows, block * self.size + column] += self.partial_sums[cycle, -1, column]
        return total[:, :columns]

    def _passing(self, delay: int) -> NDArray[np.int64]:
        """Numbers of rows ``delay`` cycles after they were at the edge, in the skew of the elements."""
        result = np.full((self.cycles, self.size, self.size), -1)
        for row, column in np.ndindex(self.size, self.size):
            late = delay + row + column
            result[late:, row, column] = self.entering[: self.cycles - late]
        return result


def record_product(left: NDArray[np.integer], right: NDArray[np.integer], size: int) -> ArrayRecording:
    """Multiply on the RTL of systolic data setup, weight shifter and array, in Amaranth's simulator.

    Rows enter as the matrix unit has them enter: one in each cycle, but for the first row of a tile, which waits until
    the tile is loaded.

    Parameters
    ----------
    left, right
        Matrices (M, K) and (K, N) of integers from -128 to 127.
    size
        S: 2, 4 or 8.

    Raises
    ------
    ValueError
        The size is another one, the matrices do not fit each other, are empty, too large for a recording, or contain
        other numbers.
    """
    if size not in (2, 4, 8):
        raise ValueError(f"the array must be 2 × 2, 4 × 4 or 8 × 8 to be shown, not {size} × {size}")
    operands = {"left": np.asarray(left, np.int64), "right": np.asarray(right, np.int64)}
    for name, matrix in operands.items():
        if matrix.ndim != 2 or not matrix.size:
            raise ValueError(f"the {name} matrix must have rows and columns, not the shape {matrix.shape}")
        if matrix.min() < _OPERANDS.min or matrix.max() > _OPERANDS.max:
            raise ValueError(f"the {name} matrix must hold int8, not {matrix.min()} to {matrix.max()}")
    (rows, inner), (depth, _) = operands["left"].shape, operands["right"].shape
    if inner != depth:
        raise ValueError(f"{inner} columns of the left matrix do not fit {depth} rows of the right one")
    # Counted before anything is allocated.
    passes = -(-inner // size) * -(-operands["right"].shape[1] // size)
    if passes * max(rows, size) > MOST_ROWS:
        raise ValueError(
            f"the product is too large to be shown: {passes} tiles × {max(rows, size)} rows are more than {MOST_ROWS}"
        )
    return _Bench(operands["left"], operands["right"], size).recording()


def _config(size: int) -> Config:
    return Config.for_size(size, profile="standard")


def _tiles(right: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The tiles of a matrix, (passes, S, S); those of the same columns follow each other."""
    depth, columns = (-(-length // size) for length in right.shape)
    filled = np.zeros((depth * size, columns * size), np.int64)
    filled[: right.shape[0], : right.shape[1]] = right
    return filled.reshape(depth, size, columns, size).transpose(2, 0, 1, 3).reshape(-1, size, size)


class _Bench:
    """Array, data setup and weight shifter, wired as in the core, between models of their neighbours.

    The neighbours are the weight FIFO, which holds all tiles, the unified buffer and the matrix sequencer.
    """

    def __init__(self, left: NDArray[np.int64], right: NDArray[np.int64], size: int) -> None:
        self._left, self._right, self._size = left, right, size
        self._config = _config(size)
        self._entering: list[int] = []
        self._edge_activations: list[list[int]] = []
        self._edge_weights: list[list[int]] = []
        self._setup = SystolicDataSetup(self._config)
        self._shifter = WeightShifter(self._config)
        self._array = SystolicArray(self._config)

    def recording(self) -> ArrayRecording:
        """Run the product and collect the registers."""
        size = self._size
        simulator = Simulator(self._design())
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._play)
        waveform = Waveform()
        with simulator.write_vcd(waveform):
            simulator.run()
        signals = waveform.signals("clk")

        def elements(name: str, *inside: str) -> NDArray[np.int64]:
            places = np.ndindex(size, size)
            found = [signals[("array", f"row_{row}", f"element_{column}", *inside, name)] for row, column in places]
            return np.stack(found, axis=1).reshape(-1, size, size)

        shifted = elements("shift_out") != 0
        # A weight is at the edge of column 0 in the cycle before it is in the first element.
        kept = slice(int(np.argmax(shifted[:, 0, 0])) - 1, len(self._entering))
        return ArrayRecording(
            left=self._left,
            right=self._right,
            entering=np.array(self._entering)[kept],
            edge_activations=np.array(self._edge_activations)[kept],
            edge_weights=np.array(self._edge_weights)[kept],
            activations=elements("activation_out")[kept],
            weights=elements("weight", "multiplier")[kept],
            partial_sums=elements("partial_sum_out")[kept],
            next_weights=elements("weight_out")[kept],
            swapped=elements("swap_out")[kept] != 0,
            shifted=shifted[kept],
        )

    def _design(self) -> Module:
        m = Module()
        setup, shifter, array = self._setup, self._shifter, self._array
        m.submodules.setup, m.submodules.shifter, m.submodules.array = setup, shifter, array
        m.d.comb += [
            array.activations.eq(setup.activations),
            array.swap.eq(setup.swap_out),
            array.weights.eq(shifter.weights),
            array.shift.eq(shifter.shift),
            setup.format.is_signed.eq(1),
        ]
        return m

    async def _play(self, context: SimulatorContext) -> None:
        """Hand over tiles and rows until the last sum has left."""
        size, shifter, array = self._size, self._shifter, self._array
        tiles = _tiles(self._right, size)
        inputs = self._inputs(len(tiles))
        # What the unified buffer was asked for, and what the data setup works on.
        asked = deque([-1] * UnifiedBuffer.read_latency)
        working = deque([-1] * SystolicDataSetup.latency)
        # The last cycle shows the array behind the last sum.
        read, row, remaining = 0, 0, SystolicArray.latency(self._config) + size + 1
        while remaining:
            is_left = row < len(inputs)
            swaps = is_left and row % len(self._left) == 0
            granted = is_left and (not swaps or bool(context.get(shifter.loaded)))
            asked.append(row if granted else -1)
            arriving = asked.popleft()
            working.append(arriving)
            row += granted
            context.set(shifter.take, swaps and granted)
            context.set(shifter.tiles, min(len(tiles) - read, self._config.weight_fifo_tiles))
            if arriving >= 0:
                context.set(self._setup.row, (inputs[arriving] & 0xFF).tolist())
            context.set(self._setup.swap_in, arriving >= 0 and arriving % len(self._left) == 0)

            self._entering.append(working.popleft())
            self._edge_activations.append([context.get(array.activations[lane]) for lane in range(size)])
            self._edge_weights.append([context.get(array.weights[lane]) for lane in range(size)])
            remaining -= row == len(inputs) and max(*asked, *working) < 0
            weights = tiles[read][context.get(shifter.read_row)] if context.get(shifter.read_enable) else None
            read += context.get(shifter.drop)
            await context.tick()
            if weights is not None:
                context.set(shifter.read_data, weights.tolist())

    def _inputs(self, passes: int) -> NDArray[np.int64]:
        """The rows of all passes, (passes × M, S)."""
        rows, inner = self._left.shape
        depth = -(-inner // self._size)
        filled = np.zeros((rows, depth * self._size), np.int64)
        filled[:, :inner] = self._left
        planes = filled.reshape(rows, depth, self._size).swapaxes(0, 1)
        return np.concatenate([planes[index % depth] for index in range(passes)])
