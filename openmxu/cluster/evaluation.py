"""The evaluation of a network on a test set, in parts that workers compute."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.events import Counter
from openmxu.arch.isa import encode_program
from openmxu.cluster.workers import Workers
from openmxu.device import Device
from openmxu.devices import open_device
from openmxu.program import InputError, Program

__all__ = ["DeviceChoice", "Evaluation", "evaluate"]

_ELEMENTS = 64
"""Batch elements of a part, as far as the batch of an execution divides them."""


@dataclass(frozen=True)
class DeviceChoice:
    """A device and its options, as of :func:`openmxu.open_device`."""

    name: str = "interpreter"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """The result.

    Attributes
    ----------
    elements, correct
        Numbers in the test set, or in a part of it; and of those whose largest output is that of the label.
    executions
        Of the program.
    cycles
        Of all executions; ``None`` if the device has no clock.
    """

    elements: int
    correct: int
    executions: int
    cycles: int | None

    @property
    def accuracy(self) -> float:
        """The share that is correct; 0 of an empty test set."""
        return self.correct / self.elements if self.elements else 0.0


@dataclass(frozen=True)
class _Part:
    inputs: Mapping[str, NDArray[Any]]
    labels: NDArray[Any]


def evaluate(
    program: Program,
    data: NDArray[Any] | Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    workers: Workers,
    choice: DeviceChoice = DeviceChoice(),  # immutable
    finished: Callable[[int], None] = lambda elements: None,
) -> Evaluation:
    """Count the elements of a test set that a network classifies as they are labelled; the same on any workers.

    Parameters
    ----------
    program
        Whose first output has a number for each class in its last dimension.
    data
        As for :meth:`openmxu.program.Program.run`.
    labels
        The right class of each element: integers of shape (elements,).
    finished
        Called with a number of further elements that are finished.

    Raises
    ------
    openmxu.program.InputError
        Data or labels do not fit.
    openmxu.device.DeviceError
        The device fails.
    openmxu.cluster.WorkersError
        The workers are lost.
    """
    given = program.check_inputs(data)
    spec = program.inputs[0]
    if any(spec.is_whole for spec in program.inputs) or program.states:
        raise InputError("the model has no batch of inputs that are independent of each other")
    count = given[spec.name].shape[spec.batch_axis]
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != (count,):
        raise InputError(f"labels must be integers of shape ({count},), not {labels.dtype} of shape {labels.shape}")
    size = program.batch * -(-_ELEMENTS // program.batch)
    axes = {spec.name: spec.batch_axis for spec in program.inputs}
    parts = (
        _Part(
            {name: array[(slice(None),) * axes[name] + (slice(start, start + size),)] for name, array in given.items()},
            labels[start : start + size],
        )
        for start in range(0, count, size)
    )
    total = Evaluation(0, 0, 0, None)
    for _, result in workers.completed(_evaluate_part, parts, _Shared.of(program, choice)):
        total = Evaluation(
            total.elements + result.elements,
            total.correct + result.correct,
            total.executions + result.executions,
            None if result.cycles is None else (total.cycles or 0) + result.cycles,
        )
        finished(result.elements)
    return total


@dataclass(frozen=True)
class _Shared:
    """The program for all parts, with a text by which a worker knows it again."""

    program: Program
    choice: DeviceChoice
    digest: str

    @classmethod
    def of(cls, program: Program, choice: DeviceChoice) -> _Shared:
        contents = hashlib.sha256(program.config.fingerprint.encode())
        contents.update(encode_program(program.instructions).tobytes())
        for array in (program.weights, program.constants):
            contents.update(array.tobytes())
        contents.update(repr((program.batch, program.segments, choice)).encode())
        return cls(program, choice, contents.hexdigest())


_opened = threading.local()


def _device(shared: _Shared) -> Device:
    """The device of this thread with the program loaded: opened for the first part, and kept for those that follow."""
    if getattr(_opened, "digest", None) != shared.digest:
        if hasattr(_opened, "device"):
            _opened.device.close()
        _opened.digest = None
        _opened.device = open_device(shared.choice.name, shared.program.config, **shared.choice.options)
        _opened.device.load(shared.program)
        _opened.digest = shared.digest
    device: Device = _opened.device
    return device


def _evaluate_part(shared: _Shared, part: _Part) -> Evaluation:
    device = _device(shared)
    device.clear_counters()
    outputs = device.run(part.inputs)
    scores = outputs[shared.program.outputs[0].name]
    if scores.ndim < 2 or scores.shape[:-1] != part.labels.shape:
        raise InputError(f"the first output must have a number for each class, but its shape is {scores.shape}")
    cycles = device.counters.get(Counter.CYCLES)
    count = len(part.labels)
    return Evaluation(
        elements=count,
        correct=int((scores.argmax(axis=-1) == part.labels).sum()),
        executions=shared.program.executions(count),
        cycles=None if cycles is None else int(cycles),
    )
