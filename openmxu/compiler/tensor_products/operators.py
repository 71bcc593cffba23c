"""MatMul of two tensors of the network."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.network import Tensor
from openmxu.compiler.ir.permutation import FILL
from openmxu.compiler.onnx.visit import Visit
from openmxu.compiler.operators.lanes import as_rows, element_numbers, has_rows, parts_of
from openmxu.compiler.operators.values import Integers, Moved, Sums
from openmxu.compiler.tensor_products.matrices import Matrices
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["tensor_product"]


def tensor_product(
    here: Visit,
    left: Integers | Moved,
    right: Integers | Moved,
    zero_points: tuple[int, int],
    scale: NDArray[np.float32] | None,
) -> Sums:
    """The sums of a (…, M, K) times b (…, K, N); dimensions in front are equal, or 1 and broadcast.

    Raises
    ------
    UnsupportedOperatorError
        One of the two is no matrix, or the batch of one is another dimension of the other.
    ModelError
        Shapes do not fit.
    """
    if len(left.shape) < 2 or len(left.shape) != len(right.shape):
        raise here.unsupported("two tensors must be matrices, with as many dimensions as each other")
    rows, inner = left.shape[-2:]
    columns = right.shape[-1]
    try:
        lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        if right.shape[-2] != inner:
            raise ValueError
    except ValueError:
        raise ModelError(f"node {here.name!r}: matrices of {left.shape} and {right.shape} do not fit") from None
    for part in (*parts_of(left), *parts_of(right)):
        if here.builder.is_open(part):
            here.builder.as_matrix(part)
    left, left_matrices = _matrices(here, left, lead)
    turned = _turned(here, right)
    transposed = _found(here, turned, lead) is not None or has_rows(here.builder, turned)
    right, found = _matrices(here, turned if transposed else right, lead)
    count = len(left_matrices.positions)
    operation = TensorProduct(
        name=here.name,
        sources=(parts_of(left)[0].tensor, parts_of(right)[0].tensor),
        target="",
        result=None,
        left=left_matrices,
        right=found,
        made=Matrices(tuple(range(0, count * rows, rows)), (0,) * count),
        rows=rows,
        inner=inner,
        columns=columns,
        transposed=transposed,
        input_signed=(left.dtype == "int8", right.dtype == "int8"),
        zero_points=zero_points,
        plane=(count * rows, 1),
    )
    scales = () if scale is None else (np.asarray(scale, np.float32).reshape(()),)
    return Sums((*lead, rows, columns), operation, Tensor(count * rows, 1, columns, False), False, scales)


def _matrices(here: Visit, value: Integers | Moved, lead: tuple[int, ...]) -> tuple[Integers | Moved, Matrices]:
    """The matrices of a value, which is put in order where they do not lie in one tensor row by row."""
    found = _found(here, value, lead)
    if found is None:
        value = as_rows(here, value)
        found = _found(here, value, lead)
        assert found is not None, "rows of a matrix are positions"
    return value, found


def _turned(here: Visit, value: Integers | Moved) -> Moved:
    """The value with its last two dimensions exchanged."""
    if isinstance(value, Integers):
        index = np.arange(math.prod(value.shape)).reshape(value.shape)
        value = Moved((value,), index, 0, here.name)
    return dataclasses.replace(value, index=np.swapaxes(value.index, -1, -2))


def _found(here: Visit, value: Integers | Moved, lead: tuple[int, ...]) -> Matrices | None:
    builder, parts = here.builder, parts_of(value)
    numbers = element_numbers(builder, value)
    if len(parts) > 1 or (numbers == FILL).any():
        return None
    numbers = np.broadcast_to(numbers, (*lead, *value.shape[-2:])).reshape(-1, *value.shape[-2:])
    return Matrices.find(numbers, builder.tensors[parts[0].tensor].channels)
