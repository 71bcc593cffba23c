"""The comparison of random models on a device with ONNX Runtime's results, as workers do it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import openmxu
from openmxu.device import Device
from scripts.random_models.families import FAMILIES
from scripts.random_models.graph import Case

__all__ = ["Comparison", "Setting", "compare", "run"]


@dataclass(frozen=True)
class Comparison:
    """Outputs of one model.

    Attributes
    ----------
    outputs, differing
        All outputs, and those that differ from ONNX Runtime's.
    largest
        Largest difference.
    varied
        Outputs that are neither the smallest nor the largest one of their model.
    """

    outputs: int
    differing: int
    largest: int
    varied: int


def compare(case: Case, device: Device) -> Comparison:
    """Run a case on a device.

    Raises
    ------
    ValueError
        The compiler refuses the model, or type or shape of the outputs are wrong.
    openmxu.device.DeviceError
        The device failed.
    """
    program = openmxu.compile(case.model, device.config, batch=len(case.expected))
    (result,) = program.run(device, case.inputs).values()
    expected = case.expected
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        raise ValueError(f"the output is {result.dtype} {result.shape}, not {expected.dtype} {expected.shape}")
    distance = np.abs(result.astype(np.int64) - expected)
    varied = (expected > expected.min()) & (expected < expected.max())
    return Comparison(expected.size, int((distance > 0).sum()), int(distance.max()), int(varied.sum()))


@dataclass(frozen=True)
class Setting:
    """The models of a family, and where they run."""

    device: str
    sizes: Sequence[int]
    family: str
    seed: int

    def size(self, number: int) -> int:
        """The size for a model: in 512 models, every zero point occurs with both of two sizes."""
        return self.sizes[(number + number // 256) % len(self.sizes)]

    def case(self, number: int) -> Case:
        return FAMILIES[self.family].case(self.seed, number)

    def run(self, number: int) -> Comparison:
        return compare(self.case(number), _device(self.device, self.size(number)))


_opened = threading.local()


def _device(name: str, size: int) -> Device:
    """A device of this thread, which stays open."""
    if not hasattr(_opened, "devices"):
        _opened.devices = {}
    devices: dict[tuple[str, int], Device] = _opened.devices
    if (name, size) not in devices:
        devices[name, size] = openmxu.open_device(name, openmxu.Config.for_size(size))
    return devices[name, size]


def run(setting: Setting, number: int) -> Comparison | str:
    """The comparison, or what went wrong."""
    try:
        return setting.run(number)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
