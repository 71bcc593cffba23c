"""The Verilated device: the RTL, compiled, runs in this process cycle by cycle without Python in the loop."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import STATUS_UNITS_OFFSET, Command, CoreStatus, Counter, Event, EventKind, Management
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Unit, encode_program
from openmxu.arch.scrub import scrub_program
from openmxu.arch.watchdog_limit import WatchdogLimit
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang, Snapshot, in_one_thread
from openmxu.disassembler import format_instruction
from openmxu.sim.interpreter import check_memory, check_program
from openmxu.sim.memory_rate import Rate, beat_times
from openmxu.sim.verilator import CORE, BusError, Design, library_path
from openmxu.sim.verilator.build import COVERAGE, TRACES
from openmxu.sim.verilator.library import Model, Port, ProtocolError, Result, StallPattern, Status
from openmxu.sim.verilator.progress import ProgressHook
from openmxu.sim.verilator.recording import Recording

__all__ = ["VerilatedDevice"]

_logger = logging.getLogger(__name__)

_SLICE = 50_000
"""Cycles between two checks for Python's signals: a fraction of a second, so that Ctrl-C works."""

_SLICE_OF_SCRUB = 100
"""Cycles between two checks whether the memories are clear."""

_LONGEST = 1 << 62
"""Cycles that the harness can still count."""

_PROGRESS = (
    *(Counter.ARRAY_ACTIVE, Counter.HOST_READ_BYTES, Counter.HOST_WRITE_BYTES, Counter.WEIGHT_BYTES),
    *(counter for counter in Counter if counter.name.startswith("RETIRED")),
)
"""Counters that stop when there is no progress; the others also count waiting."""

_PROTOCOL_ERRORS = {
    ProtocolError.MISALIGNED: "the address of a burst is no multiple of a beat",
    ProtocolError.EMPTY_BURST: "a burst has no beats",
    ProtocolError.OUT_OF_RANGE: "a burst reaches outside the memory",
    ProtocolError.WRONG_LAST: "`last` does not mark the last beat of a burst",
    ProtocolError.STROBE_OUT_OF_RANGE: "a strobe selects a byte behind the end of the memory",
    ProtocolError.VALID_WITHDRAWN: "valid was withdrawn before the transfer",
    ProtocolError.PAYLOAD_CHANGED: "the payload changed before the transfer",
    ProtocolError.UNREQUESTED_RESPONSE: "a response came that nobody asked for",
}


class VerilatedDevice(Device):
    """The openmxu core as its RTL describes it, with memories that answer after a latency and stall at random.

    The first device of a configuration builds the model, which takes from seconds to minutes; later ones load it from
    the cache. Every stream between core and memories is in order, transfers at most one beat per cycle, or fewer if the
    memory's rate is limited, and stalls at random on either side: data, responses and instructions come late, requests,
    written data and events are taken late. The harness checks that the core obeys the rules of its ports.

    Parameters
    ----------
    config
        Sizes of the core.
    seed
        Seed of the random stalls; the same seed and the same calls give the same run, cycle by cycle.
    stall_probability
        Fraction of the time that a stream stalls, from 0 up to, but not including, 1.
    stall_cycles
        Mean length of a stall in cycles, from 1 to 2**16; with 1 each cycle is independent.
    stalled_ports
        The streams that stall; by default all of them.
    memory_latency
        Cycles, at least 1, from a request to the first beat of its data, and from a write's last beat to its response.
    host_rate, weight_rate
        Bytes per cycle, an ``int`` or a ``Fraction``, that host memory and weight memory transfer at most; by default,
        and at most, a beat in every cycle. Reads and writes of host memory do not share their rate: each direction has
        all of it, as with PCI Express. Of the beats of a burst, number n comes n × width of the port ÷ rate cycles,
        rounded down, after the first one; a memory does not save up time in which it has nothing to transfer.
    waveform
        File that all signals are written to, ``.vcd`` or ``.fst``; complete once the device is closed.
    waveform_cycles
        The first and the last cycle of programs that the waveform has, as a timeline counts them: cycle 0 is the one in
        which the first instruction is taken, and time between programs does not count. Its time is then twice the
        cycle. By default it has every cycle of the device, from its reset on.
    coverage
        File with the number of times that each line of the Verilog was executed and each bit toggled, for
        ``verilator_coverage``; written when the device is closed. Not together with ``waveform``.
    host_base, weight_base
        Addresses of the first byte of host memory and of weight memory, multiples of 64. Programs use addresses from
        there on.
    watchdog
        Cycles without a transfer on any stream and without progress in the counters after which the device hangs; by
        default more than the longest instruction needs. A hang is detected after this many cycles, and before twice as
        many.
    build_progress
        Called while the model is built, with the current step and the completed fraction, from 0 to 1; by default a bar
        if standard error is a terminal.
    design
        The design to compile in place of the core: another component with its signature.
    fault
        Number of the planted fault to activate, if the design has a selector; 0 activates none.

    Raises
    ------
    TypeError, ValueError
        A parameter has the wrong type or is outside its range.
    MissingToolError
        A tool that the build needs is not installed; the error says how to get it.
    BuildError
        The build failed; the error has the first message and the path of the full log.
    OSError
        The file of the waveform or of the coverage cannot be written.
    """

    def __init__(
        self,
        config: Config,
        *,
        seed: int = 0,
        stall_probability: float = 0.0,
        stall_cycles: int = 1,
        stalled_ports: Iterable[Port] = tuple(Port),
        memory_latency: int = 4,
        host_rate: Rate = None,
        weight_rate: Rate = None,
        host_base: int = 0,
        weight_base: int = 0,
        waveform: str | Path | None = None,
        waveform_cycles: tuple[int, int] | None = None,
        coverage: str | Path | None = None,
        watchdog: int | None = None,
        build_progress: ProgressHook | None = None,
        design: Design = CORE,
        fault: int = 0,
    ) -> None:
        if not 0.0 <= stall_probability < 1.0:
            raise ValueError(f"stall_probability must be at least 0 and less than 1, not {stall_probability}")
        if not 1 <= stall_cycles <= 1 << 16:
            raise ValueError(f"stall_cycles must be from 1 to 2**16, not {stall_cycles}")
        if memory_latency < 1:
            raise ValueError(f"memory_latency must be at least 1 cycle, not {memory_latency}")
        if watchdog is not None and watchdog < 1:
            raise ValueError(f"watchdog must be at least 1 cycle, not {watchdog}")
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"seed must be from 0 to 2**64 - 1, not {seed}")
        for name, base in (("host_base", host_base), ("weight_base", weight_base)):
            if base % 64 or base < 0:
                raise ValueError(f"{name} must be a multiple of 64, not {base}")
        if waveform is not None and coverage is not None:
            raise ValueError("a device writes a waveform or coverage, not both")
        if waveform_cycles is not None:
            if waveform is None:
                raise ValueError("waveform_cycles needs a waveform")
            if not 0 <= waveform_cycles[0] <= waveform_cycles[1] < _LONGEST:
                raise ValueError(f"waveform_cycles must be the first and the last cycle, not {waveform_cycles}")
        if not 0 <= fault < 1 << 32 or (fault and design.selector is None):
            raise ValueError(f"fault must be 0, or one of those planted in the design, not {fault}")
        beats = beat_times(config, host_rate, weight_rate)
        self.config = config
        self._slowness = ceil(max(beats))
        self._watchdog_limit = WatchdogLimit(config) if watchdog is None else None
        self._watchdog = self._patience([]) if watchdog is None else watchdog
        self._design = design
        self._bases = (host_base, weight_base)
        self._cycles_per_second = 0.0
        self._broken: str | None = None
        self._recordings: list[Recording] | None = None
        file, trace = None, None
        if waveform is not None:
            file = Path(waveform)
            trace = _trace_format(file)
        elif coverage is not None:
            file, trace = Path(coverage), COVERAGE
        path = library_path(config, design=design, trace=trace, progress=build_progress)
        if file is not None:
            file.write_bytes(b"")  # Verilator's writers do not report when they cannot open a file
        threshold = min(round(stall_probability * (1 << 32)), (1 << 32) - 1)
        stalls = StallPattern(threshold, stall_cycles, sum(1 << port for port in set(stalled_ports)))
        self._model: Model | None = Model(path, seed, stalls, memory_latency, beats, file, fault, waveform_cycles)

    @in_one_thread
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program``; see :meth:`openmxu.device.Device.execute`.

        Raises
        ------
        DeviceFault
            Its attribute ``events`` is the list of events up to and including the fault's own.
        BusError
            The core violated a rule of one of its ports; a defect of the RTL.
        DeviceError
            An earlier run hung, violated a rule or was interrupted, and the device was not reset.
        """
        instructions = check_program(program)
        self._check_memories(host_memory, weight_memory)
        model = self._ready_model()
        self._watchdog = self._patience(instructions)
        self._broken = "the last run was interrupted"  # until the run ends
        model.attach(host_memory, weight_memory, self._bases)
        self._set_windows(host_memory.size, weight_memory.size)
        opcodes = np.array([instruction.word & 0xFF for instruction in instructions], np.uint8)
        halts = np.flatnonzero(opcodes == Opcode.HALT)
        model.feed(encode_program(instructions), len(halts))
        first_cycle, start = model.status().cycle, time.perf_counter()
        if self._recordings is None:
            result = self._run_to_end()
        else:
            model.record(True)
            result = self._run_to_end()
            model.record(False)
            self._recordings.append(Recording(model.recorded()))
        seconds = time.perf_counter() - start
        cycles = model.status().cycle - first_cycle
        self._cycles_per_second = cycles / seconds
        _logger.debug("%d instructions: %d cycles in %.3f s", len(instructions), cycles, seconds)
        events = [
            Event(EventKind(event.kind), event.index, event.tag, FaultCode(event.fault)) for event in model.events()
        ]
        if result is Result.FAULTED:
            self._drain()
            self._command(Command.CLEAR_FAULT)
            fault = self._fault(instructions, halts, events)
        self._detach()
        self._broken = None
        if result is Result.FAULTED:
            raise fault
        return events

    @contextmanager
    def recording(self) -> Iterator[list[Recording]]:
        """A block in which each call of :meth:`execute` adds what it recorded to the list.

        Raises
        ------
        DeviceError
            Nothing of the design can be recorded, as of a core of the profile ``lite``.
        """
        if not self._design.recorded(self.config):
            raise DeviceError(f"this design has no signals that are recorded (profile {self.config.profile})")
        recordings: list[Recording] = []
        self._recordings = recordings
        try:
            yield recordings
        finally:
            self._recordings = None

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles per second of the last run; 0 before the first."""
        return self._cycles_per_second

    @property
    def counters(self) -> Mapping[Counter, int]:
        """All counters since they were last cleared."""
        self._ready_model()
        return self._read_counters(self.config.features.counters)

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._ready_model()
        self._command(Command.CLEAR_COUNTERS)

    def snapshot(self) -> Snapshot:
        """A copy of the unified buffer and the accumulators as they are now."""
        model = self._open_model()
        config = self.config
        banks = [model.memory(index) for index in range(config.unified_buffer_banks)]
        columns = []
        index = len(banks)
        for arrays in self._design.accumulators(config):
            halves = [model.memory(index + number).view("<i4")[:, 0] for number in range(len(arrays))]
            columns.append(_interleave(halves))
            index += len(arrays)
        return Snapshot(_interleave(banks), np.stack(columns, axis=1))

    def reset(self) -> None:
        """Forget configuration registers and queued weights, as after power-on; memories keep their contents.

        Also makes the device usable again after a hang.
        """
        self._open_model().reset()
        self._detach()
        self._broken = None

    def scrub(self) -> None:
        """Clear memories, configuration registers, queued weights and counters; a core with a scrubber by itself."""
        if not self.config.features.has_scrubber:
            self.execute(scrub_program(self.config), np.zeros(0, np.uint8), np.zeros(self.config.tile_bytes, np.uint8))
            self.clear_counters()
            return
        model = self._ready_model()
        self._command(Command.SCRUB)
        deadline = model.status().cycle + len(scrub_program(self.config)) * self._watchdog
        while self._read_status() >> CoreStatus.SCRUBBING & 1:
            if model.run(_SLICE_OF_SCRUB, self._watchdog) is Result.FAILED:
                self._check(Result.FAILED)
            if model.status().cycle > deadline:
                raise self._hang()

    def close(self) -> None:
        """Free the model, and finish the waveform file."""
        if self._model is not None:
            self._model.destroy()
            self._model = None

    def __del__(self) -> None:
        # There is no model if the constructor raised.
        if getattr(self, "_model", None) is not None:
            self.close()

    def _patience(self, program: Iterable[Instruction]) -> int:
        """Cycles without progress that are a hang of ``program``."""
        if self._watchdog_limit is None:
            return self._watchdog
        return min(self._slowness * self._watchdog_limit.cycles(program), _LONGEST)

    def _open_model(self) -> Model:
        if self._model is None:
            raise DeviceError("the device is closed")
        return self._model

    def _ready_model(self) -> Model:
        model = self._open_model()
        if self._broken is not None:
            raise DeviceError(f"{self._broken}; call reset() first")
        return model

    def _check_memories(self, host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]) -> None:
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        widths = (self.config.host_address_width, self.config.weight_address_width)
        memories = (host_memory, weight_memory)
        for name, memory, base, width in zip(("host", "weight"), memories, self._bases, widths, strict=True):
            if base + memory.size > 1 << width:
                where = f" at {base:#x}" if base else ""
                raise ValueError(
                    f"{name}_memory has {memory.size} bytes{where}, more than {name}_address_width={width} reaches"
                )

    def _detach(self) -> None:
        nothing = np.zeros(0, np.uint8)
        self._open_model().attach(nothing, nothing)

    def _set_windows(self, host: int, weights: int) -> None:
        model = self._open_model()
        host_base, weight_base = self._bases
        model.write_register(Management.HOST_BASE, host_base)
        model.write_register(Management.HOST_LIMIT, host_base + host)
        model.write_register(Management.WEIGHT_BASE, weight_base)
        model.write_register(Management.WEIGHT_LIMIT, weight_base + weights)
        self._check(model.flush(self._watchdog))

    def _command(self, command: Command) -> None:
        model = self._open_model()
        model.write_register(Management.COMMAND, 1 << command)
        self._check(model.flush(self._watchdog))

    def _progress(self) -> dict[Counter, int]:
        """The counters that increase as long as a program makes progress."""
        return self._read_counters(counter for counter in _PROGRESS if counter in self.config.features.counters)

    def _run_to_end(self) -> Result:
        model = self._open_model()
        progress = None  # not read as long as there are transfers
        while True:
            result = model.run(_SLICE, self._watchdog)
            if result in (Result.ENDED, Result.FAULTED):
                return result
            if result is Result.FAILED:
                self._check(result)
            if result is Result.NO_TRANSFERS:
                before, progress = progress, self._progress()
                if progress == before:
                    raise self._hang()

    def _drain(self) -> None:
        """Let the units finish instructions that they had begun before the fault."""
        model = self._open_model()
        deadline = model.status().cycle + 2 * self._watchdog
        while self._read_status() >> STATUS_UNITS_OFFSET or not model.status().quiet:
            if model.run(16, self._watchdog) is Result.FAILED:
                self._check(Result.FAILED)
            if model.status().cycle > deadline:
                raise self._hang()

    def _fault(
        self, instructions: tuple[Instruction, ...], halts: NDArray[np.intp], events: list[Event]
    ) -> DeviceFault:
        event = next(event for event in events if event.kind is EventKind.FAULT)
        ended = sum(event.kind is EventKind.HALT for event in events)
        position = (int(halts[ended - 1]) + 1 if ended else 0) + event.index
        if position >= len(instructions):
            self._broken = f"the device reported a fault of instruction {event.index}, which the program does not have"
            raise DeviceError(self._broken)
        instruction = instructions[position]
        fault = DeviceFault(event.fault, event.index, instruction, format_instruction(instruction))
        fault.events = events
        _logger.warning("fault: %s", fault)
        return fault

    def _read_counters(self, counters: Iterable[Counter]) -> dict[Counter, int]:
        counters = tuple(counters)
        return dict(zip(counters, self._read(*(Management.COUNTERS + counter for counter in counters)), strict=True))

    def _read(self, *addresses: int) -> list[int]:
        result, values = self._open_model().read_registers(addresses, self._watchdog)
        self._check(result)
        return values

    def _read_status(self) -> int:
        (status,) = self._read(Management.STATUS)
        return status

    def _check(self, result: Result) -> None:
        """Raise an exception for an error, after which the device must be reset."""
        if result is Result.NO_TRANSFERS:
            status = self._open_model().status()
            self._broken = "the device hung"
            raise DeviceHang(f"the management port did not answer for {self._watchdog} cycles, {_where(status)}")
        if result is Result.FAILED:
            status = self._open_model().status()
            error, port = ProtocolError(status.error), Port(status.error_port)
            burst = f" ({status.error_beats} beats at address {status.error_address:#x})" if status.error_beats else ""
            self._broken = "the device broke a rule of its ports"
            raise BusError(f"{port.name.lower()}: {_PROTOCOL_ERRORS[error]}{burst}, in cycle {status.cycle}")

    def _hang(self) -> DeviceHang:
        units = self._read_status() >> STATUS_UNITS_OFFSET
        busy = [unit.name.lower() for unit in Unit if units >> unit & 1]
        names = f"busy units: {', '.join(busy)}" if busy else "no unit is busy"
        self._broken = "the device hung"
        where = _where(self._open_model().status())
        _logger.error("hang: no progress for %d cycles; %s; %s", self._watchdog, names, where)
        return DeviceHang(f"no progress for {self._watchdog} cycles; {names}; {where}")


def _interleave(banks: list[NDArray]) -> NDArray:
    """Element r of the result is element r // n of bank r % n."""
    stacked = np.stack(banks, axis=1)
    return stacked.reshape(-1, *stacked.shape[2:])


def _trace_format(path: Path) -> str:
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in TRACES:
        raise ValueError(f"a waveform file must end with .vcd or .fst, not {path.name!r}")
    if path.is_dir():
        raise ValueError(f"the waveform file is a folder: {path}")
    if not path.parent.is_dir():
        raise ValueError(f"the folder of the waveform file does not exist: {path.parent}")
    return suffix


def _where(status: Status) -> str:
    """The waiting streams, and the side that each waits for."""
    reasons = [f"{port.name.lower()} is offered and not taken" for port in status.waiting()]
    if status.host_write_missing_beats:
        reasons.append(f"host_write_request waits for {status.host_write_missing_beats} beats of data")
    if status.host_write_unrequested_beats:
        reasons.append(f"{status.host_write_unrequested_beats} beats of host_write_data wait for their request")
    reasons.append(f"{status.instructions_taken} instructions were taken")
    return "; ".join(reasons)
