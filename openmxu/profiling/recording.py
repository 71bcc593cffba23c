"""The timeline of an execution as the RTL went through it, recorded on a Verilated device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction, Opcode, Unit
from openmxu.device import Device, DeviceError
from openmxu.profiling.timeline import STALLS, Timeline, joined_timeline
from openmxu.program import Program
from openmxu.sim.cycle_model.words import Words
from openmxu.sim.cycle_model.work import Work
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator.recording import Recording

__all__ = ["first_batch", "recorded_timeline"]

_Cycles = NDArray[np.int64]

_QUEUED_UNITS = (Unit.HOST_READ, Unit.HOST_WRITE, Unit.MATRIX, Unit.ACTIVATION)
"""Units whose instructions the scoreboard tracks."""


def recorded_timeline(program: Program, device: Device, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> Timeline:
    """Run a program on a Verilated device, and return the timeline of what its RTL did.

    The signals that are recorded are read by the simulator only; the hardware, and its cycles, are the same as without
    a recording. Cycle 0 is the one in which the first instruction is taken, as in the cycle model. In the timeline

    * an instruction of a queued unit is accepted when it gets its slot in the scoreboard, and done in the cycle whose
      end its unit counts as one more retired instruction;
    * a transfer begins when the unit takes it, a multiplication with its first row in the array, an Activate with its
      first pass, and a load of parameters when it has nothing left to wait for;
    * a Read_Weights begins with its first request at the weight port, and is done when its last beat has come;
    * Halt is done with the end of the program, and other instructions of the dispatcher when they are retired.

    Parameters
    ----------
    program
        A compiled model; the device loads it.
    device
        A device of the core; memories may stall and have any latency and rates.
    inputs
        As :meth:`openmxu.device.Device.run` takes them. Of more than the program's batch, only the first batch is run.

    Raises
    ------
    TypeError
        The device is not a Verilated one.
    openmxu.program.InputError
        An input does not fit, or the program was compiled for another configuration.
    DeviceError
        The device failed, or is of the profile ``lite``, whose core cannot be recorded.
    """
    if not isinstance(device, VerilatedDevice):
        raise TypeError(f"a timeline is recorded on a VerilatedDevice, not on a {type(device).__name__}")
    first = first_batch(program, inputs)
    device.load(program)
    with device.recording() as recordings:
        device.run(first)
    segments = program.device_segments
    # Before each segment the device may have executed something else, which clears the states.
    each = len(recordings) // max(1, len(segments))
    followed = (
        (
            recording.count("cycles"),
            _Followed(program.instructions[segment.start : segment.stop], program.config, recording),
        )
        for segment, recording in zip(segments, recordings[each - 1 :: each] if each else (), strict=True)
    )
    return joined_timeline("verilator", program, ((cycles, found, found.stalls) for cycles, found in followed))


def first_batch(program: Program, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The inputs by name, of one execution."""
    values = program.check_inputs(inputs)
    for spec in program.inputs:
        if not spec.is_whole:
            chosen = [slice(None)] * values[spec.name].ndim
            chosen[spec.batch_axis] = slice(program.batch)
            values[spec.name] = values[spec.name][tuple(chosen)]
    return values


class _Followed:
    """What a recording says about each instruction. All units execute their instructions in order, so that the n-th
    pulse of a signal belongs to the n-th of them."""

    def __init__(self, instructions: Sequence[Instruction], config: Config, recording: Recording) -> None:
        self._recording = recording
        self._work = work = Work(Words(instructions), config)
        self.unit = np.asarray(work.unit, np.int64)
        self.accepted = np.zeros(len(instructions), np.int64)
        self.begun = np.zeros(len(instructions), np.int64)
        self.done = np.zeros(len(instructions), np.int64)
        self.stalls = {name: np.zeros(len(instructions), np.int64) for name in STALLS}
        self._queued()
        self._multiplications()
        self._activations()
        self._dispatched()
        self._weights(config)
        # The counter counts from the cycle after the one in which the first instruction is taken.
        origin = recording.nth("cycles", np.zeros(1, np.int64))[0] - 1
        for times in (self.accepted, self.begun, self.done):
            times -= origin

    def _queued(self) -> None:
        for unit in _QUEUED_UNITS:
            name, numbers = unit.name.lower(), np.flatnonzero(self.unit == unit)
            for times, event, lag in (
                (self.accepted, "queued", 0),
                (self.begun, "taken", 1),
                (self.done, "retired", 0),
            ):
                times[numbers] = self._pulses(f"{event}_{name}", len(numbers)) - lag

    def _pulses(self, name: str, count: int) -> _Cycles:
        """The cycles of a signal that is set once for each of ``count`` instructions."""
        found = self._recording.count(name)
        if found != count:
            raise DeviceError(f"the core gave {found} pulses of {name} for {count} instructions")
        return self._recording.cycles(name)

    def _multiplications(self) -> None:
        """The first row of each multiplication, and what it waited for."""
        numbers = np.flatnonzero(self._work.is_matrix)
        if not len(numbers):
            return
        passes = (1 + self._work.wide_input) * (1 + self._work.wide_weights)
        ends = np.cumsum((self._work.rows * passes)[numbers])
        self.begun[numbers] = self._recording.nth("array_active", np.append(0, ends[:-1]))
        # A row that waits for its tile is the next one to enter the array.
        rows = self._recording.cycles("array_active")
        for name in ("weight_stall", "weight_shift"):
            cycles, lengths = self._recording.runs(name)
            place = np.searchsorted(ends, np.searchsorted(rows, cycles), side="right")
            np.add.at(self.stalls[name], numbers[place], lengths)
        # The scoreboard's next instruction is the one behind those that have started in an earlier cycle.
        started = self._pulses("started_matrix", len(numbers))
        for name in ("raw_stall", "input_stall"):
            cycles, lengths = self._recording.runs(name)
            np.add.at(self.stalls[name], numbers[np.searchsorted(started, cycles)], lengths)

    def _activations(self) -> None:
        """The first pass of each Activate, and the start of each load."""
        queued = np.flatnonzero(self.unit == Unit.ACTIVATION)
        started = self._pulses("started_activation", len(queued))
        is_load = self._work.is_load[queued]
        self.begun[queued[is_load]] = started[is_load]
        numbers = np.flatnonzero(self._work.is_activate)
        if len(numbers):
            ends = self._pulses("passes_end", len(numbers))
            starts = self._recording.cycles("pass_starts")
            # A pass of one cycle ends in the cycle in which it starts.
            self.begun[numbers] = starts[np.append(0, np.searchsorted(starts, ends[:-1], side="right"))]

    def _dispatched(self) -> None:
        """Instructions that no unit executes."""
        numbers = np.flatnonzero(self.unit < 0)
        halts = np.flatnonzero(self._work.words.is_(Opcode.HALT))
        retired = self._recording.cycles("retired_other")
        # The last Halt is retired after its event, with which the recording ends.
        cycles = np.append(retired, np.zeros(max(0, len(numbers) - len(retired)), np.int64))
        first, lengths = self._running()
        for times in (self.accepted, self.begun, self.done):
            times[numbers] = cycles
            times[halts] = first + lengths - 1

    def _running(self) -> tuple[_Cycles, _Cycles]:
        """The first cycle, and the number of cycles, of each program."""
        cycles = self._recording.cycles("cycles")
        begins = np.flatnonzero(np.append(True, np.diff(cycles) > 1))
        return cycles[begins], np.diff(np.append(begins, len(cycles)))

    def _weights(self, config: Config) -> None:
        """The tiles of each Read_Weights. Those that the program never took may not have come when Halt drops them."""
        is_read = self._work.words.is_(Opcode.READ_WEIGHTS)
        numbers = np.flatnonzero(is_read)
        if not len(numbers):
            return
        queued = self._recording.cycles("queued_weights")
        loads = np.isin(queued, self.accepted[self._work.loads_weights])
        self.accepted[numbers] = queued[~loads]
        requested, came = self._recording.cycles("weights_requested"), self._recording.cycles("weights_came")
        beats = max(1, config.tile_bytes // config.weight_data_bytes)
        ends = np.cumsum(self._work.tiles[numbers])
        first = ends - self._work.tiles[numbers]
        if ends[-1] != len(requested):
            # Tiles were dropped, and it is not known whose they are.
            self.begun[numbers] = self.done[numbers] = self.accepted[numbers]
            return
        self.begun[numbers] = requested[first]
        self.done[numbers] = came[beats * ends - 1]
