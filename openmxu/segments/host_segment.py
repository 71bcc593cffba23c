"""The parts of a model that the host computes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.graph_runner import DOMAINS, GraphError, GraphRunner

__all__ = ["HostSegment", "HostSegmentError", "joined"]

_CONVERSIONS = ("Constant", "DequantizeLinear", "QuantizeLinear")
_NAMED = 4
"""Nodes that an error names."""


class HostSegmentError(OpenmxuError, RuntimeError):
    """The host could not compute its part of a model; the message is one line."""


def joined(name: str, pieces: Sequence[NDArray[Any]], axis: int = 0) -> NDArray[Any]:
    """One array of those of consecutive batch elements.

    Raises
    ------
    HostSegmentError
        Their other lengths depend on the data, and differ.
    """
    shapes = {piece.shape[:axis] + piece.shape[axis + 1 :] for piece in pieces}
    if len(shapes) > 1:
        raise HostSegmentError(
            f"{name!r} is of another shape for each batch element, {' and '.join(map(str, sorted(shapes)[:2]))} for "
            "example; give one element at a time"
        )
    return np.concatenate(pieces, axis)


@dataclass(frozen=True)
class HostSegment:
    """A part of a model as an ONNX graph, which the host computes.

    Attributes
    ----------
    model
        The serialized graph.
    inputs, outputs
        In the order of the graph's.
    batch
        Batch size of the graph if the model fixes it; ``None`` if it takes any.
    multiply_adds
        Multiplications of its convolutions, products and recurrent cells for one batch element, or for the arrays
        without a batch.
    """

    model: bytes
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    batch: int | None = None
    multiply_adds: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        """Name and operator of every node, but of those that only change a type if there are others."""
        import onnx

        nodes = onnx.load_from_string(self.model).graph.node
        main = [node for node in nodes if node.op_type not in _CONVERSIONS]
        return tuple(f"{node.name or node.output[0]} ({node.op_type})" for node in main or nodes)

    def check(self) -> None:
        """Check a stage that was read from a file.

        Raises
        ------
        ValueError
            The graph is damaged, has other inputs or outputs, or reads other files.
        """
        import onnx
        from google.protobuf.message import DecodeError

        try:
            model = onnx.load_from_string(self.model)
        except DecodeError as error:
            raise ValueError(f"the host's part is damaged: {error}") from None
        graph = model.graph
        for specs, items in ((self.inputs, graph.input), (self.outputs, graph.output)):
            names = [item.name for item in items]
            if not specs or [spec.name for spec in specs] != names:
                raise ValueError(f"the host's part has {', '.join(names) or 'nothing'} as inputs or outputs")
        if any(item.data_location == onnx.TensorProto.EXTERNAL for item in graph.initializer):
            raise ValueError("the host's part wants data of other files")
        if {node.domain for node in graph.node} - set(DOMAINS):
            raise ValueError("the host's part has operators of an unknown domain")

    @functools.cached_property
    def _runner(self) -> GraphRunner:
        return GraphRunner(self.model, optimize=True)

    def run(self, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The outputs by name.

        Parameters
        ----------
        values
            Arrays by name, the inputs among them. A graph with a fixed batch is computed as often as needed; the last
            batch is padded with zeros. Arrays without a batch are computed once.

        Raises
        ------
        HostSegmentError
            The graph cannot be computed.
        """
        if self.inputs[0].is_whole:
            return self._computed({spec.name: values[spec.name] for spec in self.inputs}, 1)
        given = {spec.name: np.moveaxis(values[spec.name], spec.batch_axis, 0) for spec in self.inputs}
        count = len(given[self.inputs[0].name])
        if count == 0:
            return {spec.name: np.zeros(spec.full_shape(0), spec.dtype) for spec in self.outputs}
        step = self.batch or count
        parts = [self._run_part(given, start, start + step) for start in range(0, count, step)]
        results = {}
        for spec in self.outputs:
            pieces = [np.moveaxis(part[spec.name], spec.batch_axis, 0) for part in parts]
            results[spec.name] = np.moveaxis(joined(spec.name, pieces)[:count], 0, spec.batch_axis)
        return results

    def _run_part(self, values: Mapping[str, NDArray[Any]], start: int, stop: int) -> dict[str, NDArray[Any]]:
        given, count = {}, 0
        for spec in self.inputs:
            part = values[spec.name][start:stop]
            if self.batch is not None and len(part) < self.batch:
                part = np.concatenate([part, np.zeros((self.batch - len(part), *spec.shape), spec.dtype)])
            given[spec.name], count = np.moveaxis(part, 0, spec.batch_axis), len(part)
        return self._computed(given, count)

    def _computed(self, given: Mapping[str, NDArray[Any]], count: int) -> dict[str, NDArray[Any]]:
        try:
            results = self._runner.run(given)
        except GraphError as error:
            raise HostSegmentError(f"the host's part of the model ({self._summary}) failed: {error}") from None
        for spec, array in zip(self.outputs, results, strict=True):
            # Other lengths may depend on the data, such as the number of objects found.
            lacks_batch = not spec.is_whole and array.shape[spec.batch_axis : spec.batch_axis + 1] != (count,)
            if array.dtype != spec.dtype or lacks_batch:
                raise HostSegmentError(f"the host made {array.dtype} {array.shape} of {spec.name!r}")
        return dict(zip([spec.name for spec in self.outputs], results, strict=True))

    @property
    def _summary(self) -> str:
        """The first of its nodes, and how many more there are."""
        first, rest = self.nodes[:_NAMED], self.nodes[_NAMED:]
        return ", ".join(first) + (f" and {len(rest)} more" if rest else "")
