"""Random networks of operations on planes, and their execution on the interpreter."""

from __future__ import annotations

import dataclasses

import numpy as np

import openmxu
from openmxu.compiler import compile_network, evaluate
from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Combination, Convolution, Operation, Pooling, Result, byte_table, lookup
from openmxu.compiler.ir.permutation import FILL, Permutation
from openmxu.compiler.ir.window import Window
from openmxu.compiler.operators.builder import byte_limits
from openmxu.segments.host_tensor import HostTensor

KINDS = ("convolution", "convolution", "point", "maximum", "average", "sum", "product", "table", "movement")
MOVEMENTS = ("channels", "slice", "pad", "turn", "mirror", "repeat", "reshape", "anything")


class Maker:
    """Adds random operations to a network; each reads existing tensors."""

    def __init__(self, random: np.random.Generator, shape: tuple[int, int, int]) -> None:
        self.random = random
        self.operations: list[Operation] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors = {"x": Tensor(*shape, bool(random.integers(2)))}

    def add(self, kind: str) -> None:
        """Add an operation; if the tensor is too small for its kind, add a table instead."""
        names = [name for name in self.tensors if name not in self.constants]
        source = names[max(0, len(names) - 1 - int(self.random.integers(2)))]
        tensor, target = self.tensors[source], f"t{len(self.operations)}"
        signed = bool(self.random.integers(2))
        match kind:
            case "convolution" | "point":
                point = Window(stride_y=int(self.random.integers(1, 3)))
                window = point if kind == "point" else self._window(3, dilated=True)
                operation, made = self._convolution(source, target, window, signed)
            case "maximum" | "average":
                operation, made = self._pooling(source, target, kind == "maximum", signed)
            case "sum" | "product":
                operation, made = self._combination(source, target, kind == "product", signed)
            case "movement":
                operation, made = self._movement(source, target)
            case _:
                table = byte_table(self.random.permutation(256))
                operation, made = lookup(target, source, target, table), dataclasses.replace(tensor, signed=signed)
        if made.height < 1 or made.width < 1:
            self.add("table")
            return
        self.operations.append(operation)
        self.tensors[target] = made

    def network(self) -> Network:
        """The network; its outputs are all unused tensors, and the last sums may stay int32."""
        last = self.operations[-1]
        if isinstance(last, Convolution) and self.random.integers(3) == 0:
            self.operations[-1] = dataclasses.replace(last, result=None)
            self.tensors[last.target] = dataclasses.replace(self.tensors[last.target], item=4)
        read = {name for operation in self.operations for name in operation.sources}
        outputs = [name for name in self.tensors if name not in read and name not in self.constants]
        return Network(
            inputs=(self._port("x"),),
            outputs=tuple(self._port(name) for name in outputs),
            tensors=self.tensors,
            operations=tuple(self.operations),
            constants=self.constants,
        )

    def _port(self, name: str) -> Port:
        tensor = self.tensors[name]
        dtype = "int32" if tensor.item == 4 else "int8" if tensor.signed else "uint8"
        shape = (tensor.channels, tensor.height, tensor.width)
        return Port(HostTensor(name, dtype, shape, tensor.channels, dtype, channels_first=True), name)

    def _window(self, largest: int, dilated: bool = False) -> Window:
        height, width, *strides = (int(value) for value in self.random.integers(1, largest + 1, 4))
        dilations = [int(value) for value in self.random.integers(1, 3, 2)] if dilated else [1, 1]
        pads = [int(self.random.integers(0, length)) for length in (height, width, height, width)]
        return Window(height, width, *strides, *dilations, *pads)

    def _result(self, spread: float, channels: int | None, signed: bool) -> Result:
        low = -128 if signed else 0
        limits = sorted(int(value) for value in self.random.integers(low, low + 256, 2))
        scale = np.asarray(self.random.uniform(0.5, 2, channels) * 60 / spread, np.float32)
        if self.random.integers(2):
            limits = [low, low + 255]
        return Result(scale, int(self.random.integers(low, low + 256)), *limits)

    def _byte(self, signed: bool) -> int:
        return int(self.random.integers(256)) - (128 if signed else 0)

    def _convolution(self, source: str, target: str, window: Window, signed: bool) -> tuple[Operation, Tensor]:
        tensor = self.tensors[source]
        groups = int(
            self.random.choice([count for count in (1, 2, 3, tensor.channels) if tensor.channels % count == 0])
        )
        outputs = groups * int(self.random.integers(1, max(2, 20 // groups)))
        low, high = ((-128, 127), (0, 255), (-255, 255))[self.random.integers(3)]
        shape = (outputs, tensor.channels // groups, window.height, window.width)
        operation = Convolution(
            name=target,
            sources=(source,),
            target=target,
            result=self._result(5000 * np.sqrt(np.prod(shape[1:])), outputs, signed),
            weights=self.random.integers(low, high + 1, shape).astype(np.int16),
            bias=self.random.integers(-5000, 5001, outputs).astype(np.int32),
            window=window,
            groups=groups,
            input_signed=tensor.signed,
            zero_point=self._byte(tensor.signed),
        )
        return operation, Tensor(*window.outputs(tensor.height, tensor.width), outputs, signed)

    def _pooling(self, source: str, target: str, maximum: bool, signed: bool) -> tuple[Operation, Tensor]:
        tensor, window = self.tensors[source], self._window(3)
        if maximum:
            signed = tensor.signed
        low = -128 if signed else 0
        operation = Pooling(
            name=target,
            sources=(source,),
            target=target,
            result=Result(np.ones((), np.float32), 0 if maximum else self._byte(signed), low, low + 255),
            window=window,
            maximum=maximum,
            counts_padding=bool(self.random.integers(2)),
            input_signed=tensor.signed,
            zero_point=0 if maximum else self._byte(tensor.signed),
            input_scale=np.float32(0.3),
            output_scale=np.float32(0.2),
        )
        height, width = window.outputs(tensor.height, tensor.width)
        # A window that lies completely in the padding has no average.
        if (height - 1) * window.stride_y - window.top >= tensor.height:
            height = 0
        if (width - 1) * window.stride_x - window.left >= tensor.width:
            width = 0
        return operation, Tensor(height, width, tensor.channels, signed)

    def _combination(self, source: str, target: str, multiplies: bool, signed: bool) -> tuple[Operation, Tensor]:
        tensor = self.tensors[source]
        alike = [
            name
            for name, other in self.tensors.items()
            if (other.height, other.width, other.channels) == (tensor.height, tensor.width, tensor.channels)
        ]
        second = alike[self.random.integers(len(alike))]
        if second == source and self.random.integers(2):
            second = f"{target} constant"
            self.tensors[second] = dataclasses.replace(tensor, signed=True)
            shape = (tensor.height, tensor.width, tensor.channels)
            self.constants[second] = self.random.integers(-128, 128, shape).astype(np.int32)
        formats = (tensor.signed, self.tensors[second].signed)
        operation = Combination(
            name=target,
            sources=(source, second),
            target=target,
            result=self._result(5000 if multiplies else 80, None, signed),
            multiplies=multiplies,
            input_signed=formats,
            zero_points=tuple(self._byte(item) for item in formats),
            second_scale=np.float32(0.7),
        )
        return operation, dataclasses.replace(tensor, signed=signed)

    def _movement(self, source: str, target: str) -> tuple[Operation, Tensor]:
        """Elements of one tensor, or of all tensors with the same signedness, in another order."""
        tensor = self.tensors[source]
        names = [source]
        if self.random.integers(2):
            others = [name for name, item in self.tensors.items() if item.signed == tensor.signed]
            names += [name for name in others if name not in self.constants and name != source]
        count, index = 0, np.zeros((tensor.height, tensor.width, 0), np.int64)
        for name in names:
            item = self.tensors[name]
            elements = np.arange(count, count + item.positions * item.channels).reshape(item.height, item.width, -1)
            count += elements.size
            if elements.shape[:2] == index.shape[:2]:
                index = np.concatenate([index, elements], axis=2)
        for _ in range(int(self.random.integers(1, 4))):
            moved = self._moved(index, str(self.random.choice(MOVEMENTS)))
            index = moved if 0 < moved.size <= 4000 else index
        operation = Permutation(
            name=target,
            sources=tuple(names),
            target=target,
            result=Result(np.ones((), np.float32), fill := self._byte(tensor.signed), *byte_limits(tensor.signed)),
            index=index,
            input_signed=tensor.signed,
            fill=fill,
        )
        return operation, Tensor(*index.shape, tensor.signed)

    def _moved(self, index: np.ndarray, how: str) -> np.ndarray:
        random, (height, width, channels) = self.random, index.shape
        match how:
            case "channels":
                return index[:, :, random.integers(0, channels, random.integers(1, channels + 1))]
            case "slice":
                first = [int(random.integers(0, length)) for length in index.shape]
                step = random.integers(1, 4, 3)
                return index[first[0] :: step[0], first[1] :: step[1], first[2] :: max(1, step[2] - 1)]
            case "pad":
                return np.pad(index, random.integers(0, 3, (3, 2)), constant_values=FILL)
            case "turn":
                return index.transpose(random.permutation(3))
            case "mirror":
                return np.flip(index, int(random.integers(3)))
            case "repeat":
                return np.repeat(index, int(random.integers(1, 4)), int(random.integers(3)))
            case "reshape":
                return index.reshape(width, channels, height)
        return random.choice(index.reshape(-1), (int(random.integers(1, 5)), 2, 3))


def random_planes(random: np.random.Generator, shape: tuple[int, int, int], operations: int) -> Network:
    """A random network with an input of ``shape`` (height, width, channels)."""
    maker = Maker(random, shape)
    for _ in range(operations):
        maker.add(str(random.choice(KINDS)))
    return maker.network()


def differing_planes(network: Network, config: openmxu.Config, random: np.random.Generator, batch: int) -> int:
    """Number of outputs that differ between the definition and the compiled program on the interpreter."""
    return differing_outputs(network, compile_network(network, config, batch), random)


def differing_outputs(network: Network, program: openmxu.Program, random: np.random.Generator) -> int:
    """Number of outputs that differ between the definition and a program for the network on the interpreter."""
    source = network.inputs[0].host
    limits = np.iinfo(source.dtype)
    values = random.integers(limits.min, limits.max + 1, (program.batch, *source.shape)).astype(source.dtype)
    expected = evaluate(network, values)
    if not isinstance(expected, dict):
        expected = {network.outputs[0].host.name: expected}
    with openmxu.open_device("interpreter", program.config) as device:
        results = program.run(device, values)
    assert results.keys() == expected.keys()
    assert all(results[name].shape == expected[name].shape for name in expected)
    return sum(int((results[name] != expected[name]).sum()) for name in expected)
