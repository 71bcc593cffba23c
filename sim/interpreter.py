"""The functional interpreter: a device in numpy that executes one instruction after the other.

It is the reference for every other device. Nothing in it models time; what it leaves in the memories, the events and
the faults are what the instruction set says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, OutputFormat, Register
from openmxu.arch.legality import PARAMETER_ROWS, LegalityChecker, Window
from openmxu.arch.numerics import operand, requantize
from openmxu.device import Device, DeviceFault, Snapshot
from openmxu.disassembler import format_instruction

__all__ = ["Interpreter", "check_memory", "check_program"]

_TAGGED_EVENTS = {
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
    Opcode.DEBUG_TAG: EventKind.DEBUG_TAG,
}


def check_program(program: Iterable[Instruction]) -> tuple[Instruction, ...]:
    """The instructions of ``program``, which must end with Halt.

    Raises
    ------
    ValueError
        The last instruction is not Halt, or there is none.
    """
    instructions = tuple(program)
    if not instructions:
        raise ValueError("a program must end with Halt; this one is empty")
    last = instructions[-1]
    if last.word & 0xFF != Opcode.HALT:
        name = f"opcode {last.word & 0xFF:#04x}" if last.format is None else last.format.name
        raise ValueError(f"a program must end with Halt; instruction {len(instructions) - 1}, the last one, is {name}")
    return instructions


def check_memory(name: str, memory: NDArray[np.uint8], *, writeable: bool = False) -> None:
    """Check that ``memory`` can serve as host or weight memory.

    Raises
    ------
    ValueError
        It is no C-contiguous uint8 vector, or not writeable where ``writeable`` asks for it; the message says what it
        is.
    """
    if not isinstance(memory, np.ndarray):
        raise ValueError(f"{name} must be a uint8 array, not {type(memory).__name__}")
    if memory.dtype != np.uint8 or memory.ndim != 1 or not memory.flags.c_contiguous:
        layout = "" if memory.flags.c_contiguous else ", not contiguous"
        raise ValueError(
            f"{name} must be a contiguous uint8 vector, not {memory.dtype} of shape {memory.shape}{layout}; "
            "np.ascontiguousarray(x, np.uint8).reshape(-1) makes one"
        )
    if writeable and not memory.flags.writeable:
        raise ValueError(f"{name} must be writeable; pass a copy of this one")


class Interpreter(Device):
    """Executes programs sequentially in numpy.

    Parameters
    ----------
    config
        Sizes of the core.

    Attributes
    ----------
    unified_buffer : uint8 array, (unified_buffer_rows, S)
    accumulators : int32 array, (accumulator_rows, S)
    biases : int32 array, (parameter_sets, S)
    scales : float32 array, (parameter_sets, S)
        The memories; all start as zeros.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.unified_buffer = np.zeros((config.unified_buffer_rows, config.size), np.uint8)
        self.accumulators = np.zeros((config.accumulator_rows, config.size), np.int32)
        self.biases = np.zeros((config.parameter_sets, config.size), np.int32)
        self.scales = np.zeros((config.parameter_sets, config.size), np.float32)
        self._checker = LegalityChecker(config)
        self._host = np.zeros(0, np.uint8)
        self._weights = np.zeros(0, np.uint8)
        self._queued: deque[tuple[int, dict[str, int]]] = deque()
        self._tile = np.zeros((config.size, config.size), np.int32)

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
        """
        instructions = check_program(program)
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        self._host, self._weights = host_memory, weight_memory
        self._checker.host = Window(0, host_memory.size)
        self._checker.weights = Window(0, weight_memory.size)
        events: list[Event] = []
        index = 0
        for instruction in instructions:
            fault = self._checker.check(instruction)
            if fault is not FaultCode.NONE:
                self._forget_weights()
                events.append(Event(EventKind.FAULT, index, fault=fault))
                raise _device_fault(fault, index, instruction, events)
            opcode = instruction.format.opcode
            self._execute(opcode, instruction.values)
            if opcode in _TAGGED_EVENTS:
                events.append(Event(_TAGGED_EVENTS[opcode], index, tag=instruction["tag"]))
            elif opcode is Opcode.HALT:
                events.append(Event(EventKind.HALT, index))
            index = 0 if opcode is Opcode.HALT else index + 1
        return events

    @property
    def counters(self) -> Mapping[Counter, int]:
        """Empty: the interpreter has no clock."""
        return {}

    def clear_counters(self) -> None:
        """Nothing to clear: the interpreter has no clock."""

    def reset(self) -> None:
        """Forget configuration registers and queued weights; memories keep their contents."""
        self._checker = LegalityChecker(self.config)
        self._forget_weights()

    def snapshot(self) -> Snapshot:
        """Copies of the unified buffer and the accumulators."""
        return Snapshot(self.unified_buffer.copy(), self.accumulators.copy())

    def _execute(self, opcode: Opcode, values: dict[str, int]) -> None:
        match opcode:
            case Opcode.READ_HOST_MEMORY:
                self._read_host_memory(values, self.config.size)
            case Opcode.READ_HOST_MEMORY_ALTERNATE:
                self._read_host_memory(values, self._host_stride)
            case Opcode.WRITE_HOST_MEMORY:
                self._write_host_memory(values, self.config.size)
            case Opcode.WRITE_HOST_MEMORY_ALTERNATE:
                self._write_host_memory(values, self._host_stride)
            case Opcode.READ_WEIGHTS:
                self._read_weights(values)
            case Opcode.MATRIX_MULTIPLY:
                self._matrix_multiply(values)
            case Opcode.ACTIVATE:
                self._activate(values)
            case Opcode.SET_CONFIGURATION if values["register"] == Register.LOAD_PARAMETERS:
                self._load_parameters()
            case Opcode.HALT:
                self._forget_weights()

    @property
    def _host_stride(self) -> int:
        return self._checker.register(Register.HOST_STRIDE)["stride"]

    def _unified_buffer_rows(self, values: dict[str, int], rows: int) -> NDArray[np.uint8]:
        first = values["unified_buffer"]
        return self.unified_buffer[first : first + rows]

    def _accumulator_rows(self, values: dict[str, int]) -> NDArray[np.int32]:
        first = values["accumulator"]
        return self.accumulators[first : first + values["rows"]]

    def _read_host_memory(self, values: dict[str, int], stride: int) -> None:
        size = self.config.size
        for row, target in enumerate(self._unified_buffer_rows(values, values["rows"])):
            address = values["host"] + row * stride
            target[:] = self._host[address : address + size]

    def _write_host_memory(self, values: dict[str, int], stride: int) -> None:
        size = self.config.size
        for row, source in enumerate(self._unified_buffer_rows(values, values["rows"])):
            address = values["host"] + row * stride
            self._host[address : address + size] = source

    def _read_weights(self, values: dict[str, int]) -> None:
        format = self._checker.register(Register.WEIGHT_FORMAT)
        tile_bytes = self.config.tile_bytes
        for tile in range(values["tiles"]):
            self._queued.append((values["weights"] + tile * tile_bytes, format))

    def _take_tile(self) -> NDArray[np.int32]:
        """The next queued tile; reading weight memory this late is the same, for nothing writes to it."""
        address, format = self._queued.popleft()
        tile = self._weights[address : address + self.config.tile_bytes]
        return operand(tile, format["zero_point"], bool(format["signed"])).reshape(self.config.size, self.config.size)

    def _forget_weights(self) -> None:
        self._checker.begin_program()
        self._queued.clear()

    def _matrix_multiply(self, values: dict[str, int]) -> None:
        if values["next_tile"]:
            self._tile = self._take_tile()
        format = self._checker.register(Register.INPUT_FORMAT)
        bytes_ = self._unified_buffer_rows(values, values["rows"])
        inputs = operand(bytes_, format["zero_point"], bool(format["signed"]))
        # float64 is exact here, at most S · 255 · 255 < 2**53, and numpy multiplies integer matrices slowly.
        sums = (inputs.astype(np.float64) @ self._tile.astype(np.float64)).astype(np.int32)
        accumulators = self._accumulator_rows(values)
        accumulators[:] = accumulators + sums if values["accumulate"] else sums

    def _activate(self, values: dict[str, int]) -> None:
        rows, size = values["rows"], self.config.size
        # int32 array additions wrap, as the hardware's do.
        sums = self._accumulator_rows(values) + self.biases[values["parameters"]]
        if values["output"] == OutputFormat.INT32:
            bytes_ = sums.astype("<i4").view(np.uint8).reshape(rows, size, 4)
            self._unified_buffer_rows(values, 4 * rows)[:] = bytes_.transpose(0, 2, 1).reshape(4 * rows, size)
            return
        format = self._checker.register(Register.OUTPUT_FORMAT)
        scale = self.scales[values["parameters"]]
        result = requantize(sums, scale, format["zero_point"], format["minimum"], format["maximum"])
        self._unified_buffer_rows(values, rows)[:] = result.astype(np.uint8)

    def _load_parameters(self) -> None:
        values = self._checker.register(Register.LOAD_PARAMETERS)
        first, count, size = values["first"], values["count"], self.config.size
        rows = self._unified_buffer_rows(values, PARAMETER_ROWS * count).reshape(count, PARAMETER_ROWS, size)
        columns = np.ascontiguousarray(rows.transpose(0, 2, 1))
        self.biases[first : first + count] = columns[:, :, :4].copy().view("<i4")[:, :, 0]
        self.scales[first : first + count] = columns[:, :, 4:].copy().view("<f4")[:, :, 0]


def _device_fault(code: FaultCode, index: int, instruction: Instruction, events: list[Event]) -> DeviceFault:
    fault = DeviceFault(code, index, instruction, format_instruction(instruction))
    fault.events = events
    return fault
