"""Random networks of products, sums, products of tensors and other scales, of int8, uint8 and int16."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Combination, Convolution, Operation, Rescaling, Result
from openmxu.segments.host_tensor import HostTensor

__all__ = ["inputs_of", "mixed_network"]

_TYPES = ("int16", "int16", "int8", "uint8")


@dataclass
class _Drawing:
    """A network under construction: every tensor has a type, and ``rows`` × ``columns`` positions."""

    random: np.random.Generator
    rows: int
    columns: int
    types: dict[str, str] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)
    constants: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def tensor(self, name: str, channels: int, dtype: str | None = None) -> str:
        self.types[name] = dtype or str(self.random.choice(_TYPES))
        self.channels[name] = channels
        return name

    def operation(self, source: str) -> None:
        target = f"t{len(self.operations)}"
        draw = (self.product, self.product, self.combination, self.rescaling)[self.random.integers(4)]
        self.operations.append(draw(source, target))

    def product(self, source: str, target: str) -> Convolution:
        outputs, inputs = int(self.random.integers(1, 50)), self.channels[source]
        self.tensor(target, outputs)
        scale = 2 * self._span(target) / (np.sqrt(inputs) * 35 * self._span(source))
        weights = self.random.integers(-60, 61, (outputs, inputs, 1, 1)).astype(np.int16)
        return Convolution(
            **self._common(source, target, np.full(outputs, scale, np.float32)),
            weights=weights,
            bias=self.random.integers(-1000, 1001, outputs).astype(np.int32),
            input_signed=self._signed(source),
            zero_point=self._zero_point(source),
        )

    def combination(self, source: str, target: str) -> Combination:
        same = [name for name in self.types if self.channels[name] == self.channels[source] and name != source]
        other = same[0] if same else self.tensor(f"with {target}", self.channels[source])
        if not same and self.random.random() < 0.5:
            limits = np.iinfo(self.types[other])
            shape = (self.rows, self.columns, self.channels[other])
            self.constants[other] = self.random.integers(limits.min, limits.max + 1, shape).astype(np.int32)
        self.tensor(target, self.channels[source])
        multiplies = bool(self.random.integers(2))
        first, second = (
            np.float32(self._span(target) / self._span(name) * self.random.choice([-0.6, 0.6]))
            for name in (source, other)
        )
        scale = abs(first) / np.float32(self._span(other)) * 4 if multiplies else first
        return Combination(
            **self._common(source, target, np.asarray(scale, np.float32), other),
            multiplies=multiplies,
            input_signed=(self._signed(source), self._signed(other)),
            zero_points=(self._zero_point(source), self._zero_point(other)),
            second_scale=second,
        )

    def rescaling(self, source: str, target: str) -> Rescaling:
        self.tensor(target, self.channels[source], None if self.types[source] == "int16" else "int16")
        scale = np.asarray(self._span(target) / self._span(source) * self.random.uniform(0.5, 1.5), np.float32)
        return Rescaling(
            **self._common(source, target, scale),
            input_signed=self._signed(source),
            zero_point=self._zero_point(source),
        )

    def _common(self, source: str, target: str, scale: NDArray[np.float32], *others: str) -> dict[str, object]:
        limits = np.iinfo(self.types[target])
        result = Result(scale, 0, limits.min, limits.max)
        return {"name": target, "sources": (source, *others), "target": target, "result": result}

    def _span(self, name: str) -> int:
        return 32768 if self.types[name] == "int16" else 128

    def _signed(self, name: str) -> bool:
        return self.types[name] != "uint8"

    def _zero_point(self, name: str) -> int:
        return 0 if self.types[name] == "int16" else 3

    def port(self, name: str) -> Port:
        shape, dtype = (self.rows * self.columns, self.channels[name]), self.types[name]
        return Port(HostTensor(name, dtype, shape, shape[1], dtype), name)

    def network(self) -> Network:
        made = [operation.target for operation in self.operations]
        used = {name for operation in self.operations for name in operation.sources}
        tensors = {
            name: Tensor(self.rows, self.columns, self.channels[name], True).of_type(dtype)
            for name, dtype in self.types.items()
        }
        return Network(
            inputs=tuple(self.port(name) for name in self.types if name not in made and name not in self.constants),
            outputs=tuple(self.port(name) for name in made if name not in used or self.random.random() < 0.3),
            tensors=tensors,
            operations=tuple(self.operations),
            constants=self.constants,
        )


def mixed_network(random: np.random.Generator) -> Network:
    """A network of one to five operations, the first of which reads ``x``."""
    rows = int(random.choice([1, 1, 3]))
    drawing = _Drawing(random, rows, int(random.integers(1, 3)) if rows > 1 else 1)
    drawing.tensor("x", int(random.integers(1, 60)))
    for number in range(int(random.integers(1, 6))):
        drawing.operation(("x", *(item.target for item in drawing.operations))[random.integers(number + 1)])
    return drawing.network()


def inputs_of(network: Network, random: np.random.Generator, batch: int) -> dict[str, NDArray[np.integer]]:
    """Random inputs by name."""
    inputs = {}
    for port in network.inputs:
        limits, shape = np.iinfo(port.host.dtype), (batch, *port.host.shape)
        inputs[port.host.name] = random.integers(limits.min, limits.max + 1, shape).astype(port.host.dtype)
    return inputs
