"""The operation: products of matrices of which no factor is constant."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.operations import Operation
from openmxu.compiler.ir.permutation import Permutation
from openmxu.compiler.tensor_products.matrices import Matrices

__all__ = ["TensorProduct"]


@dataclass(frozen=True, kw_only=True)
class TensorProduct(Operation):
    """``y = result(sum over k of (a[m, k] - za) · (b[k, n] - zb))`` for each pair of matrices of two tensors.

    Attributes
    ----------
    left, right, made
        Where a, b and y lie.
    rows, inner, columns
        Numbers of m, k and n.
    transposed
        The right tensor has the transpose of b: a row for each n.
    input_signed, zero_points
        How the bytes of the two sources are read.
    plane
        Height and width of the target.
    """

    left: Matrices
    right: Matrices
    made: Matrices
    rows: int
    inner: int
    columns: int
    transposed: bool
    input_signed: tuple[bool, bool]
    zero_points: tuple[int, int]
    plane: tuple[int, int]

    @property
    def kind(self) -> str:
        return "tensor product"

    def multiply_adds(self, height: int, width: int) -> int:
        return len(self.left.positions) * self.rows * self.inner * self.columns

    def compute(self, inputs: list[NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        batch = len(inputs[0])
        left, right = (x.reshape(len(x), -1, x.shape[-1]) for x in inputs)
        a = self.left.take(self.rows, self.inner, left) - self.zero_points[0]
        if self.transposed:
            b = self.right.take(self.columns, self.inner, right).transpose(0, 1, 3, 2)
        else:
            b = self.right.take(self.inner, self.columns, right)
        # float64 is exact: far fewer than 2**36 products of at most 255 · 255.
        products = a.astype(np.float64) @ (b - self.zero_points[1]).astype(np.float64)
        height, width = self.plane
        total = np.zeros((batch, height * width, max(self.made.channels) + self.columns), np.int32)
        self.made.put(products.astype(np.int64).astype(np.int32), total)
        sums = total.reshape(batch, height, width, -1)
        return sums if self.result is None else self.result.apply(sums, signed)

    def rearranged(self, permutation: Permutation) -> TensorProduct | None:
        """The product that makes at once what ``permutation`` makes of its target; ``None`` where it cannot."""
        height, width, channels = permutation.index.shape
        flat = permutation.index.reshape(-1)
        count = len(self.made.positions) * self.rows * self.columns
        if flat.size != count or not np.array_equal(np.sort(flat), np.arange(count)):
            return None
        # Where each element of the target goes.
        places = np.empty(count, np.int64)
        places[flat] = np.arange(count)
        last = max(self.made.channels) + self.columns
        numbers = np.arange(count).reshape(1, -1, last)
        own = self.made.take(self.rows, self.columns, numbers)[0]
        made = Matrices.find(places[own], channels)
        return None if made is None else dataclasses.replace(self, made=made, plane=(height, width))
