"""A recurrent cell in integers: what one step of a sequence does, once for numpy and for the activation unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.numerics import add_scaled, requantize
from openmxu.compiler.ir.operations import Operation, Result
from openmxu.segments.host_tensor import HostTensor

__all__ = ["BYTE", "INPUT", "UNSIGNED_BYTE", "WORD", "Format", "Kept", "Phase", "Recurrent", "Step", "Sum"]

INPUT = "x"
"""The value that is the input of a step."""

_ONE = np.float32(1)


@dataclass(frozen=True)
class Format:
    """How the elements of a value are read: one byte or, if ``wide``, two; without zero point."""

    signed: bool
    wide: bool = False

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return 1 + self.wide


BYTE, UNSIGNED_BYTE, WORD = Format(True), Format(False), Format(True, wide=True)


@dataclass(frozen=True)
class Sum:
    """Sums of products in the accumulators.

    Attributes
    ----------
    weights : int16 arrays, (units, inputs)
        For each value that is multiplied its weights, from -128 to 127: of :data:`INPUT`, and of a value of the cell.
    factors
        For each value that is added unit by unit what it is multiplied by, from -128 to 127. The array does it with
        a tile that has the factor on its diagonal: two values that tables have made become one of more bits.
    """

    name: str
    weights: Mapping[str, NDArray[np.int16]] = field(default_factory=dict)
    factors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One pass of the activation unit: ``target = result(source + bias, with operand)``.

    Attributes
    ----------
    target
        A value of the cell.
    source
        A sum of the phase, or a value.
    bias : int32 array
        Scalar or (units,).
    operand
        A value that the biased source is multiplied by, or that is added behind the scale, times ``operand_scale``.
    result
        Its scale is a scalar or (units,).
    """

    target: str
    source: str
    bias: NDArray[np.int32] = field(default_factory=lambda: np.zeros((), np.int32))
    operand: str | None = None
    multiplies: bool = False
    operand_scale: np.float32 = _ONE
    result: Result

    @property
    def is_uniform(self) -> bool:
        """Whether it is the same for all units."""
        return self.bias.ndim == 0 and self.result.scale.ndim == 0

    def compute(self, values: Mapping[str, NDArray[np.int32]], signed: bool) -> NDArray[np.int32]:
        """The integers of the target, (batch, units); int32 sums and products wrap."""
        total = values[self.source] + self.bias
        result = self.result
        limits = (result.zero_point, result.minimum, result.maximum)
        if self.operand is None or self.multiplies:
            if self.operand is not None:
                total = total * values[self.operand]
            return result.finish(requantize(total, result.scale, *limits), signed)
        return result.finish(add_scaled(total, result.scale, values[self.operand], self.operand_scale, *limits), signed)


@dataclass(frozen=True)
class Phase:
    """Sums that are there at the same time, and the steps that use them up, in their order."""

    sums: tuple[Sum, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Kept:
    """A carried value that stays in the unified buffer: the input of the model that it stands for, and the output."""

    host: HostTensor
    output: str


@dataclass(frozen=True, kw_only=True)
class Recurrent(Operation):
    """A cell that is applied to one position of its first source after the other.

    Attributes
    ----------
    cell
        What it is: ``lstm`` or ``gru``.
    units
        Channels of all values but the input.
    input_signed, zero_point
        How input bytes are read.
    reverse
        It begins with the last position; what it makes of a position has the place of that position.
    formats
        Of every value but the input.
    phases
        One step of the sequence.
    carried
        Values that go from one step to the next.
    hidden
        The value that makes up ``sequence``.
    prologue
        Steps that make carried values of others before the sequence begins.
    initial
        For carried values the tensor that they begin with; the others begin with 0 or come from the prologue.
    kept
        Carried values that stay in the unified buffer from one execution of a program to the next.
    sequence
        The tensor of all steps, ``None`` where nobody wants it.
    final
        For carried values the tensor that they end in.
    """

    result: Result | None = None
    cell: str
    units: int
    input_signed: bool
    zero_point: int
    reverse: bool = False
    formats: Mapping[str, Format]
    phases: tuple[Phase, ...]
    carried: tuple[str, ...]
    hidden: str
    prologue: tuple[Step, ...] = ()
    initial: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    sequence: str | None = None
    final: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.cell

    @property
    def targets(self) -> tuple[str, ...]:
        sequence = () if self.sequence is None else (self.sequence,)
        return (*sequence, *self.final.values())

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All of them, the prologue first."""
        return (*self.prologue, *(step for phase in self.phases for step in phase.steps))

    @cached_property
    def tables(self) -> tuple[NDArray[np.uint8], ...]:
        """The different tables of its steps."""
        tables = [step.result.table for step in self.steps if step.result.table is not None]
        return tuple({table.tobytes(): table for table in tables}.values())

    @property
    def derived(self) -> frozenset[str]:
        """Carried values that the prologue makes."""
        return frozenset(step.target for step in self.prologue)

    def multiply_adds(self, height: int, width: int) -> int:
        weights = [array for phase in self.phases for item in phase.sums for array in item.weights.values()]
        return height * width * sum(array.size for array in weights)

    def compute_all(self, values: Mapping[str, NDArray[np.int32]], signed: Mapping[str, bool]) -> dict[str, NDArray]:
        x = values[self.sources[0]]
        batch, length = x.shape[:2]
        state = {name: np.zeros((batch, self.units), np.int32) for name in self.carried}
        for name, tensor in self.initial.items():
            state[name] = np.broadcast_to(values[tensor].reshape(-1, self.units), (batch, self.units))
        for step in self.prologue:
            state[step.target] = step.compute(state, self.formats[step.target].signed)
        sequence = np.zeros((batch, length, 1, self.units), np.int32)
        for index in range(length)[:: -1 if self.reverse else 1]:
            state = self._advance({**state, INPUT: x[:, index, 0] - np.int32(self.zero_point)})
            sequence[:, index, 0] = state[self.hidden]
        made = {} if self.sequence is None else {self.sequence: sequence}
        return made | {tensor: state[name].reshape(batch, 1, 1, -1) for name, tensor in self.final.items()}

    def _advance(self, values: dict[str, NDArray[np.int32]]) -> dict[str, NDArray[np.int32]]:
        """Carried values behind one step. Sums see those before it, until the phase that makes others has ended."""
        for phase in self.phases:
            for item in phase.sums:
                # float64 is exact: far fewer than 2**38 products of at most 255 · 128.
                products = [values[name] @ weights.T.astype(np.float64) for name, weights in item.weights.items()]
                products += [values[name] * float(factor) for name, factor in item.factors.items()]
                values[item.name] = sum(products).astype(np.int64).astype(np.int32)
            for step in phase.steps:
                values[step.target] = step.compute(values, self.formats[step.target].signed)
        return {name: values[name] for name in self.carried}
