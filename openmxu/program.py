"""Compiled models, which run on every device, can be saved and loaded, and check their inputs."""

from __future__ import annotations

import io
import itertools
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.arch.isa import Instruction
from openmxu.device import Device, RunProgress
from openmxu.disassembler import disassemble
from openmxu.html_table import html_table
from openmxu.layer import Layer
from openmxu.program_file import ProgramFileError, write_atomically
from openmxu.program_format import ARRAYS, decode, encode
from openmxu.segments.array_spec import ArraySpec
from openmxu.segments.by_element import compute_by_element, no_elements
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_segment import HostSegment, HostSegmentError
from openmxu.session import Session
from openmxu.state import State

__all__ = ["InputError", "Program"]


_DAMAGE = (
    *(ValueError, KeyError, TypeError, EOFError, AttributeError, SyntaxError, OverflowError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error),
    RuntimeError,  # zipfile raises it for unknown compression and encryption
)
"""Exceptions of zipfile, numpy, json and the checks below for a file that is not a program."""

_Execute = Callable[[DeviceSegment, Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]


class InputError(OpenmxuError, ValueError):
    """An input has the wrong name, type or shape, or holds NaN, or the device's configuration is not the program's."""


@dataclass(frozen=True)
class Program:
    """A model compiled for one configuration and batch.

    It is a sequence of segments. The device computes most of them; the host computes operations that the device does
    not support.

    :mod:`openmxu.program_format` describes its files.

    Attributes
    ----------
    config
        The only configuration that it runs on.
    batch
        Batch elements that one execution computes; 1 where the arrays have no batch.
    inputs, outputs
        The caller's arrays.
    segments
        In the order in which they are computed. Every array of a model has a unique name; a segment looks up its inputs
        among the arrays of the caller and of the segments before it.
    instructions
        Those of all device segments, each segment ended by Halt.
    weights
        Content of weight memory, uint8.
    constants
        Content of parts of host memory, uint8, one device segment after the other: biases, scales and tables.
    host_bytes
        Size of host memory.
    multiply_adds
        Useful multiplications of one execution on the device, padding not counted.
    layers
        The layers that the instructions compute, in the order of the network.
    layer_numbers
        For each instruction the number of its layer, int32; -1 if it belongs to none.
    states
        Tensors that stay in the unified buffer from one execution to the next; used by :meth:`session`.
    by_element
        All segments compute one batch element before the next one begins: the batch is not to be seen inside the model.
    """

    config: Config
    batch: int
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    segments: tuple[HostSegment | DeviceSegment, ...]
    instructions: tuple[Instruction, ...]
    weights: NDArray[np.uint8]
    constants: NDArray[np.uint8]
    host_bytes: int
    multiply_adds: int
    layers: tuple[Layer, ...]
    layer_numbers: NDArray[np.int32]
    states: tuple[State, ...] = ()
    by_element: bool = False

    def __repr__(self) -> str:
        layers, instructions = f"{len(self.layers)} layers", f"{len(self.instructions):,} instructions"
        return f"<Program for size {self.config.size}, batch {self.batch}: {layers}, {instructions}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the arrays, the segments, and what they take."""
        config = self.config
        facts: list[tuple[str, str | int]] = [
            ("core", f"{config.size} × {config.size}, profile {config.profile}"),
            ("batch", self.batch),
            *((f"input {spec.name}", str(spec)) for spec in self.inputs),
            *((f"output {spec.name}", str(spec)) for spec in self.outputs),
            ("layers", len(self.layers)),
            ("instructions", len(self.instructions)),
            ("bytes of weights", len(self.weights)),
            ("bytes of host memory", self.host_bytes),
            ("multiply-adds", self.multiply_adds),
            ("share of the device", f"{self.device_share:.2%} of all multiply-adds"),
            ("segments", ", ".join("host" if isinstance(part, HostSegment) else "device" for part in self.segments)),
        ]
        return html_table((), facts)

    @property
    def device_segments(self) -> tuple[DeviceSegment, ...]:
        """The segments that the device computes."""
        return tuple(segment for segment in self.segments if isinstance(segment, DeviceSegment))

    @property
    def host_segments(self) -> tuple[HostSegment, ...]:
        """The segments that the host computes."""
        return tuple(segment for segment in self.segments if isinstance(segment, HostSegment))

    @property
    def host_multiply_adds(self) -> int:
        """Multiplications of one execution that the host does."""
        return self.batch * sum(segment.multiply_adds for segment in self.host_segments)

    @property
    def device_share(self) -> float:
        """The device's share of all multiplications; 1 where there are none."""
        total = self.multiply_adds + self.host_multiply_adds
        return self.multiply_adds / total if total else 1.0

    def run(self, device: Device, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Load the program unless it is loaded already, and run it: :meth:`Device.load` and :meth:`Device.run`.

        Raises
        ------
        InputError
            An input or the device does not fit; the message says what was expected and what was found.
        openmxu.device.DeviceError
            The device failed.
        """
        device.load(self)
        return device.run(inputs)

    def session(self, device: Device) -> Session:
        """A session of executions that keep the states; states are 0 only at the beginning of the first one.

        Raises
        ------
        InputError
            The device has another configuration.
        ValueError
            The program has no states.
        """
        return Session(self, device)

    def compute(
        self,
        inputs: NDArray[Any] | Mapping[str, NDArray[Any]],
        execute: _Execute,
        *,
        most: int | None = None,
        progress: RunProgress | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Compute the outputs: the host's segments here, the device's with ``execute``; for :meth:`Device.run`.

        Parameters
        ----------
        inputs
            As of :meth:`Device.run`.
        execute
            One execution of a segment: from its inputs by name, of up to ``batch`` elements, to its outputs, of
            ``batch``.
        most
            Batch elements that the states on the device are for; ``None`` if it need not keep them.
        progress
            As of :meth:`Device.run`.

        Raises
        ------
        InputError
            An input does not fit, or has more than ``most`` batch elements.
        """
        values = self.check_inputs(inputs)
        first = self.inputs[0]
        count = 1 if first.is_whole else values[first.name].shape[first.batch_axis]
        if progress is not None:
            execute = _counted(execute, progress, self._segment_executions(count))
        if first.is_whole:
            return self._compute(values, execute)
        if most is not None and count > most:
            raise InputError(f"states are there for {most} batch elements, but the inputs have {count}")
        if not self.by_element:
            return self._compute(values, execute) if count else no_elements(self.outputs)
        try:
            return compute_by_element(
                self.inputs, self.outputs, values, lambda element: self._compute(element, execute)
            )
        except HostSegmentError as error:
            raise InputError(str(error)) from None

    def _segment_executions(self, count: int) -> int:
        """How often all device segments together are executed for ``count`` batch elements."""
        times, each = (count, 1) if self.by_element else (1, count)
        lengths = [each if segment.elements is None else segment.elements for segment in self.device_segments]
        return times * sum(-(-n // part.batch) for n, part in zip(lengths, self.device_segments, strict=True))

    def _compute(
        self,
        values: Mapping[str, NDArray[Any]],
        execute: _Execute,
    ) -> dict[str, NDArray[Any]]:
        there = dict(values)
        try:
            for segment in self.segments:
                self._check_given(segment, there)
                there |= segment.run(there) if isinstance(segment, HostSegment) else segment.run(there, execute)
        except HostSegmentError as error:
            raise InputError(str(error)) from None
        return {spec.name: there[spec.name] for spec in self.outputs}

    @staticmethod
    def _check_given(segment: DeviceSegment | HostSegment, there: Mapping[str, NDArray[Any]]) -> None:
        """Check that the shapes that the host made are those that were found when the model was compiled."""
        for item in segment.inputs:
            spec = item if isinstance(item, ArraySpec) else item.spec
            array = there[spec.name]
            if not spec.accepts(array):
                raise InputError(
                    f"the model makes {spec.name!r} of a shape that depends on the data, {array.shape} here, but the "
                    f"rest of it is compiled for {spec}"
                )

    def host_memory(self) -> NDArray[np.uint8]:
        """A new host memory, uint8, (host_bytes,): the constants, and zeros elsewhere."""
        memory, taken = np.zeros(self.host_bytes, np.uint8), 0
        for segment in self.device_segments:
            first, count = segment.constants
            memory[first : first + count] = self.constants[taken : taken + count]
            taken += count
        return memory

    def check_device(self, device: Device) -> None:
        """Check that a device has the program's configuration.

        Raises
        ------
        InputError
            It has another configuration.
        """
        if device.config != self.config:
            raise InputError(f"the program was compiled for {self.config}, but the device is {device.config}")

    def check_states(self, values: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Check values for states, given by name as the model's inputs would be.

        Returns
        -------
        The values with the batch in front.

        Raises
        ------
        InputError
            A value does not fit; the message says what was expected and what was found.
        """
        specs = {state.tensor.name: state.tensor.spec for state in self.states}
        moved = {}
        for name, array in values.items():
            if name not in specs:
                raise InputError(f"expected states named {', '.join(specs)}; found {name}")
            spec = specs[name]
            wanted = f"{spec} with a batch of {self.batch}"
            if not isinstance(array, np.ndarray):
                raise InputError(f"state {name!r} must be an array, {wanted}, not {type(array).__name__}")
            if not spec.accepts(array) or array.shape[spec.batch_axis] != self.batch:
                raise InputError(f"state {name!r} must be {wanted}, not {array.dtype} of shape {array.shape}")
            # An infinite input saturates; an infinite state would begin a cell whose states are bounded.
            _refuse(lambda values: ~np.isfinite(values), array, f"state {name!r} must be finite")
            moved[name] = np.moveaxis(array, spec.batch_axis, 0)
        return moved

    def elements(self, results: Mapping[str, NDArray[Any]]) -> int:
        """The number of batch elements that have these results."""
        spec = self.outputs[0]
        return 1 if spec.is_whole else int(results[spec.name].shape[spec.batch_axis])

    def executions(self, count: int) -> int:
        """How often the program runs for ``count`` batch elements."""
        return -(-count // self.batch)

    def disassemble(self) -> str:
        """The instructions as assembly text."""
        return disassemble(self.instructions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a program file; ``path`` holds either all of it or what it held before.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The contents of a program file; the same for the same program."""
        buffer = io.BytesIO()
        np.savez(buffer, **encode(self))  # type: ignore[arg-type]  # no array has the name of a parameter
        return buffer.getvalue()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Read a program file.

        Raises
        ------
        openmxu.program_file.ProgramFileError
            The file is damaged, or was not written by :meth:`save`.
        OSError
            The file cannot be read.
        """
        return cls.from_bytes(Path(path).read_bytes(), os.fspath(path))

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Program:
        """The program in the contents of a program file; ``name`` stands for the file in messages.

        Raises
        ------
        openmxu.program_file.ProgramFileError
            They are damaged, or were not written by :meth:`to_bytes`.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in ARRAYS}
            return cls(**decode(arrays))
        except _DAMAGE as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ProgramFileError(f"{name} is no openmxu program, or damaged: {reason}") from None

    def check_inputs(self, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Check inputs for :meth:`run` before a device is opened.

        Returns
        -------
        The inputs by name.

        Raises
        ------
        InputError
            An input does not fit; the message says what was expected and what was found.
        """
        names = [tensor.name for tensor in self.inputs]
        if not isinstance(inputs, Mapping) and len(names) > 1:
            raise InputError(f"expected inputs named {', '.join(names)}; found one array")
        given = dict(inputs) if isinstance(inputs, Mapping) else dict.fromkeys(names, inputs)
        if sorted(given) != sorted(names):
            raise InputError(f"expected inputs named {', '.join(names)}; found {', '.join(map(str, given)) or 'none'}")
        for spec in self.inputs:
            array = given[spec.name]
            if not isinstance(array, np.ndarray):
                raise InputError(f"input {spec.name!r} must be an array, {spec}, not {type(array).__name__}")
            if not spec.accepts(array):
                raise InputError(f"input {spec.name!r} must be {spec}, not {array.dtype} of shape {array.shape}")
            _refuse(np.isnan, array, f"input {spec.name!r} must be numbers")
        if len({given[spec.name].shape[spec.batch_axis] for spec in self.inputs if not spec.is_whole}) > 1:
            raise InputError("all inputs must have the same batch")
        return given


def _refuse(is_wrong: Callable[[NDArray[Any]], NDArray[np.bool_]], array: NDArray[Any], message: str) -> None:
    """Raise InputError with the place of the first element of a float array that is wrong, if there is one."""
    if array.dtype.kind != "f" or not (wrong := is_wrong(array)).any():
        return
    index = tuple(map(int, np.unravel_index(wrong.argmax(), wrong.shape)))
    place = f"[{', '.join(map(str, index))}]"
    raise InputError(f"{message}, but {place} is {array[index]}: {np.count_nonzero(wrong):,} of {array.size:,} are not")


def _counted(execute: _Execute, progress: RunProgress, count: int) -> _Execute:
    """``execute``, which reports each call that has ended."""
    ended = itertools.count(1)

    def counted(segment: DeviceSegment, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        results = execute(segment, values)
        progress(next(ended), count)
        return results

    return counted
