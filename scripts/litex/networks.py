"""The networks that the simulated system runs, with what ONNX Runtime makes of their images."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
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

__all__ = ["DRAM", "LEAST_OF_IDEAL", "NETWORKS", "Case", "load_case", "on_axi"]

DIGITS = "digits"
NETWORKS = (DIGITS, "mnist", "resnet20")
_IMAGES = {DIGITS: 360}
_BATCH = {DIGITS: 40}

LEAST_OF_IDEAL = {DIGITS: 0.8, "mnist": 0.75, "resnet20": 0.8}
"""The least part of the array utilization with ideal memory. MNIST reads its weights for each image: the DRAM's rate is
its limit."""

_RATE = Fraction(23, 8)
DRAM = {"memory_latency": 20, "host_rate": _RATE, "weight_rate": _RATE}
"""The system's DRAM as a memory of the AXI device. Of the 4 bytes in each cycle of the system's clock a dense layer of
4,096 × 64 that waits for nothing but weights gets 3.00 with one row and 2.75 with eight rows; this is the mean. Opening
rows, changing banks and refreshing take the others. The latency is that of a row that must be opened."""


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


def on_axi(case: Case, **memories: int | Fraction) -> tuple[float, float]:
    """Array utilization, and cycles for an image, of the same program on the simulated AXI shell: with memories that
    transfer a beat in each cycle, or with others, such as :data:`DRAM`."""
    images = case.network.images
    with openmxu.open_device("axi", case.network.program.config, **memories) as device:
        device.load(case.network.program)
        device.run(images)
        cycles = device.counters[Counter.CYCLES]
        return device.counters[Counter.ARRAY_ACTIVE] / cycles, cycles / len(images)
