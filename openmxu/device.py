"""The interface of every device, and the exceptions that devices raise."""

from __future__ import annotations

import abc
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.arch.events import Counter, Event
from openmxu.arch.faults import FAULT_DESCRIPTIONS, FaultCode
from openmxu.arch.isa import Instruction
from openmxu.state import write_states

if TYPE_CHECKING:
    from openmxu.program import Program
    from openmxu.segments.device_segment import DeviceSegment

__all__ = [
    "Device",
    "DeviceError",
    "DeviceFault",
    "DeviceHang",
    "NotLoadedError",
    "RunProgress",
    "Snapshot",
    "in_one_thread",
]

_logger = logging.getLogger(__name__)

RunProgress = Callable[[int, int], None]
"""Called with the number of executions of device segments that have ended, and the number of all of them."""


class DeviceError(OpenmxuError):
    """A device could not run a program."""


class DeviceFault(DeviceError):
    """A program broke a rule of the machine and was stopped.

    Attributes
    ----------
    code : FaultCode
    index : int
        Index of the instruction in its program.
    instruction : Instruction
    events : list of Event
        The events of the programs that were run together, up to the fault.
    """

    def __init__(
        self, code: FaultCode, index: int, instruction: Instruction, text: str, detail: str | None = None
    ) -> None:
        self.code = code
        self.index = index
        self.instruction = instruction
        self.events: list[Event] = []
        # Broken hardware may report a fault without a code.
        reason = detail or FAULT_DESCRIPTIONS.get(code, "the device gives no reason for the fault")
        super().__init__(f"instruction {index} ({text}): {code.name}: {reason}")


class DeviceHang(DeviceError):
    """A device made no progress; the message names the waiting unit."""


class NotLoadedError(DeviceError):
    """A device was asked to run, but no program has been loaded."""


@dataclass(frozen=True)
class Snapshot:
    """The contents of a device's memories that a program can see.

    Attributes
    ----------
    unified_buffer : uint8 array, (unified_buffer_rows, S)
    accumulators : int32 array, (accumulator_rows, S)
    """

    unified_buffer: NDArray[np.uint8]
    accumulators: NDArray[np.int32]


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_AnyDevice = TypeVar("_AnyDevice", bound="Device")


def in_one_thread(
    method: Callable[Concatenate[_AnyDevice, _Parameters], _Result],
) -> Callable[Concatenate[_AnyDevice, _Parameters], _Result]:
    """Decorate a method of a device so that it raises DeviceError while another thread is in such a method."""

    @functools.wraps(method)
    def guarded(self: _AnyDevice, *arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        if not self._turn.acquire(blocking=False):
            raise DeviceError(
                f"{method.__name__}() was called while another thread uses the device: a device serves one thread; "
                "open one for each thread, or let the threads take turns with a lock"
            )
        try:
            return method(self, *arguments, **options)
        finally:
            self._turn.release()

    return guarded


class Device(abc.ABC):
    """A device that runs programs: interpreter, simulated RTL or board. A context manager.

    :meth:`load` and :meth:`run` are for compiled models, :meth:`execute` is for bare instructions. Memories and
    configuration registers keep their contents from one program to the next.

    A device serves one thread at a time. :meth:`load`, :meth:`run` and :meth:`execute` raise DeviceError, and change
    nothing, while another thread is in one of them. Threads that share a device need a lock around everything that
    belongs together, for example a load and its runs; devices that are opened separately are independent, and programs
    may be shared.
    """

    config: Config
    _program: Program | None = None
    _image: NDArray[np.uint8]
    """Host memory of the loaded program, uint8."""
    _turn: threading.RLock
    """Held by the thread that uses the device; :meth:`run` calls :meth:`execute`."""

    def __new__(cls, *arguments: object, **options: object) -> Self:
        # Here rather than in __init__, which devices need not call.
        device = super().__new__(cls)
        device._turn = threading.RLock()
        return device

    @in_one_thread
    def load(self, program: Program) -> None:
        """Put instructions, weights and constants of a program into the device's memory, for any number of runs.

        The program replaces the one that was loaded; if it is the same object, nothing is transferred. It stays loaded
        until another one is, also after :meth:`execute`, :meth:`reset`, :meth:`scrub`, and a run that failed.

        Raises
        ------
        openmxu.program.InputError
            The program was compiled for another configuration; the one that was loaded stays.
        ValueError
            The program does not fit into the device's memory; no program is loaded.
        DeviceError
            The device failed; no program is loaded.
        """
        if program is self._program:
            return
        program.check_device(self)
        self._program, self._image = None, program.host_memory()
        self._place(program)
        self._program = program
        _logger.debug(
            "loaded %d instructions, %d bytes of weights and %d bytes of host memory on %s",
            *(len(program.instructions), len(program.weights), program.host_bytes, type(self).__name__),
        )

    @in_one_thread
    def unload(self) -> None:
        """Forget the loaded program and its host memory, inputs and outputs included."""
        self._program, self._image = None, np.zeros(0, np.uint8)

    @in_one_thread
    def run(
        self,
        inputs: NDArray[Any] | Mapping[str, NDArray[Any]],
        *,
        keep_states: bool = False,
        progress: RunProgress | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Compute the outputs of the loaded program; only inputs and outputs are transferred.

        Parameters
        ----------
        inputs
            The only input, or every input by name, each of shape (any batch, *shape); the batch is another dimension
            where the input's ``batch_axis`` says so. A batch larger than the program's takes several executions; the
            last one is padded with zeros.
        keep_states
            Begin with the states that the device holds rather than with 0. The batch is then at most the program's. See
            :class:`~openmxu.session.Session`.
        progress
            Called after each execution, in this thread.

        Returns
        -------
        Outputs by name, each of shape (batch, *shape).

        Raises
        ------
        NotLoadedError
            No program is loaded.
        openmxu.program.InputError
            An input does not fit; the message says what was expected and what was found.
        DeviceError
            The device failed.
        """
        program = self._program
        if program is None:
            raise NotLoadedError("no program is loaded: call load(program) before run(inputs)")

        def execute(segment: DeviceSegment, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
            if program.states and not keep_states:
                write_states(self, program.states, {})
            segment.store_inputs(values, self._image, self.config.size)
            self._run_loaded(program, segment)
            return segment.load_outputs(self._image, self.config.size)

        return program.compute(inputs, execute, most=program.batch if keep_states else None, progress=progress)

    @in_one_thread
    def run_segment(self, start: int, inputs: bytes) -> bytes:
        """Run a segment of the loaded program once, for a caller that converts inputs and outputs itself.

        Parameters
        ----------
        start
            Number of the segment's first instruction.
        inputs
            The bytes of its inputs in host memory, one input after the other.

        Returns
        -------
        The bytes of its outputs, likewise.

        Raises
        ------
        NotLoadedError
            No program is loaded.
        ValueError
            No segment begins there, or the inputs have another size.
        DeviceError
            The device failed.
        """
        program, size = self._program, self.config.size
        if program is None:
            raise NotLoadedError("no program is loaded: call load(program) before run_segment(start, inputs)")
        found = [segment for segment in program.device_segments if segment.start == start]
        if not found:
            raise ValueError(f"no segment of the program begins with instruction {start}")
        segment = found[0]
        segment.write_inputs(inputs, self._image, size)
        self._run_loaded(program, segment)
        return segment.read_outputs(self._image, size)

    def _place(self, program: Program) -> None:
        """Transfer a program and ``_image``. Devices in this process use both where they are."""

    def _run_loaded(self, program: Program, segment: DeviceSegment) -> None:
        """Run a segment of the loaded program once, from the inputs in ``_image`` to the outputs there."""
        self.execute(program.instructions[segment.start : segment.stop], self._image, program.weights)

    @abc.abstractmethod
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run bare instructions until they have ended; the loaded program stays loaded.

        Parameters
        ----------
        program
            Instructions; the last one is Halt. Several programs, each ended by Halt, run back to back.
        host_memory, weight_memory
            uint8 arrays, C-contiguous; byte i is address i, and the windows end with the arrays. The program writes
            to ``host_memory`` in place. Host_Synchronize is acknowledged at once.

        Returns
        -------
        The events in their order, each Halt included.

        Raises
        ------
        DeviceFault
            The program broke a rule; everything before the faulting instruction has been executed. The device is
            ready for the next program.
        DeviceHang
            The device made no progress.
        ValueError
            The program does not end with Halt, or a memory is no contiguous uint8 vector.
        """

    @property
    @abc.abstractmethod
    def counters(self) -> Mapping[Counter, int]:
        """The counters of the configuration's profile since they were last cleared; empty on a device that has no
        clock."""

    @abc.abstractmethod
    def clear_counters(self) -> None:
        """Set all counters to 0."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget configuration registers and queued weights, as after power-on; memories keep their contents."""

    @abc.abstractmethod
    def scrub(self) -> None:
        """Clear the core's memories and everything that :meth:`reset` clears, between one user's programs and the next
        one's."""

    def close(self) -> None:
        """Release the device's resources; it cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
