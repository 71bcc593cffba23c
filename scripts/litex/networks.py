"""The networks that the simulated system runs, with what ONNX Runtime makes of their images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch.events import Counter
from openmxu.cli.networks import load_network
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.segments.host_tensor import HostTensor
from scripts.litex.contents import Network
from scripts.random_models import reference_outputs

__all__ = ["NETWORKS", "Case", "ideal_utilization", "load_case"]

DIGITS = "digits"
NETWORKS = (DIGITS, "mnist", "resnet20")
_IMAGES = {DIGITS: 360}
_BATCH = {DIGITS: 40}


@dataclass(frozen=True)
class Case:
    """A network with its images, and ONNX Runtime's outputs for them."""

    network: Network
    expected: NDArray[Any]

    @property
    def output(self) -> HostTensor:
        """The network's only output."""
        (segment,) = self.network.program.device_segments
        (output,) = segment.outputs
        return output


def load_case(name: str, config: openmxu.Config, count: int | None, batch: int | None) -> Case:
    """Compile a network for a configuration, with ``count`` images and a batch, or the usual ones."""
    import onnx

    count, batch = count or _IMAGES.get(name, 4), batch or _BATCH.get(name, 1)
    if name == DIGITS:
        model, images = onnx.load(DIGITS_MODEL), digits_test_split()[0][:count]
    else:
        example = load_network(name)
        given = example.unseen()[0][:count] if hasattr(example, "unseen") else example.inputs(count)
        model, images = example.model(), np.asarray(given)
    program = openmxu.compile(model, config, batch=min(batch, count))
    (expected,) = reference_outputs(model, {model.graph.input[0].name: images}).values()
    return Case(Network(name, program, images), expected)


def ideal_utilization(case: Case) -> float:
    """Array utilization of the same program on the simulated AXI shell, with memory that transfers a beat a cycle."""
    with openmxu.open_device("axi", case.network.program.config) as device:
        device.load(case.network.program)
        device.run(case.network.images)
        counters = device.counters
    return counters[Counter.ARRAY_ACTIVE] / counters[Counter.CYCLES]
