"""What the compiler makes of a model that the device cannot compute alone: networks, and graphs for the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.compiler.ir.network import Network, evaluate
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.by_element import compute_by_element
from openmxu.segments.host_segment import HostSegment

__all__ = ["Model"]


@dataclass(frozen=True)
class Model:
    """A model divided between device and host.

    Attributes
    ----------
    inputs, outputs
        The caller's arrays.
    segments
        In an order in which they can be computed: networks are the device's.
    by_element
        As of :class:`openmxu.program.Program`.
    """

    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    segments: tuple[Network | HostSegment, ...]
    by_element: bool = False

    @classmethod
    def of(cls, network: Network) -> Model:
        """A network alone."""
        inputs, outputs = (tuple(port.host.spec for port in ports) for ports in (network.inputs, network.outputs))
        return cls(inputs, outputs, (network,))

    @property
    def networks(self) -> tuple[Network, ...]:
        """What the device computes."""
        return tuple(segment for segment in self.segments if isinstance(segment, Network))

    @property
    def host_segments(self) -> tuple[HostSegment, ...]:
        """What the host computes."""
        return tuple(segment for segment in self.segments if isinstance(segment, HostSegment))

    @property
    def host_work(self) -> int:
        """Multiplications that the host does for one batch element, or for arrays without a batch."""
        return sum(segment.multiply_adds for segment in self.host_segments)

    def evaluate(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The outputs by name for the inputs by name, each as the graph sees it; the reference without a device.

        States that stay on the device are 0.
        """
        if not self.by_element:
            return self._evaluate(inputs)
        return compute_by_element(self.inputs, self.outputs, inputs, self._evaluate)

    def _evaluate(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        values = dict(inputs)
        for segment in self.segments:
            values |= segment.run(values) if isinstance(segment, HostSegment) else _compute(segment, values)
        return {spec.name: values[spec.name] for spec in self.outputs}


def _compute(network: Network, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A network's outputs for real inputs."""
    given = {
        port.host.name: port.host.to_integers(np.moveaxis(values[port.host.name], port.host.batch_axis, 0))
        for port in network.inputs
    }
    results = evaluate(network, given)
    outputs = {}
    for port in network.outputs:
        integers = results[port.host.name] if isinstance(results, dict) else results
        outputs[port.host.name] = np.moveaxis(port.host.from_integers(integers), 0, port.host.batch_axis)
    return outputs
