"""The interpreter: its memories, and the effect of each instruction on them, in order.

It is the reference for every other device. It does not model time; the contents of memories, the events and the faults
are those that the instruction set defines.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import OUTPUT_BYTES, PARAMETER_ROWS, TABLE_BYTES, TABLES, table_rows
from openmxu.arch.events import Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Operand, OutputFormat, Pooling, Register
from openmxu.arch.legality import LegalityChecker, LegalityState, Window
from openmxu.arch.numerics import add_scaled, elements, operand, requantize
from openmxu.device import Device, DeviceFault, Snapshot, in_one_thread
from openmxu.disassembler import format_instruction
from openmxu.sim.interpreter.checks import check_memory, check_program
from openmxu.sim.interpreter.planes import convolved_positions, pooled

__all__ = ["Interpreter"]

_logger = logging.getLogger(__name__)

_QueuedTile = tuple[NDArray[np.uint8], int, bool]
"""The bytes of a tile, (S, S), their zero point, and whether they are signed."""

_KEPT_PROGRAMS = 64
"""Programs that are known to be legal, each from one state: they are not checked again."""

_TAGGED_EVENTS = {
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
    Opcode.DEBUG_TAG: EventKind.DEBUG_TAG,
}


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
    tables : uint8 array, (8, 256)
        The memories; all start as zeros.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.unified_buffer = np.zeros((config.unified_buffer_rows, config.size), np.uint8)
        self.accumulators = np.zeros((config.accumulator_rows, config.size), np.int32)
        self.biases = np.zeros((config.parameter_sets, config.size), np.int32)
        self.scales = np.zeros((config.parameter_sets, config.size), np.float32)
        self.tables = np.zeros((TABLES, TABLE_BYTES), np.uint8)
        self._checker = LegalityChecker(config)
        self._host = np.zeros(0, np.uint8)
        self._weights = np.zeros(0, np.uint8)
        self._queued: deque[_QueuedTile] = deque()
        self._tile = np.zeros((config.size, config.size), np.int32)
        self._legal: dict[tuple[tuple[Instruction, ...], LegalityState], None] = {}

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
        """
        instructions = check_program(program)
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        self._host, self._weights = host_memory, weight_memory
        self._checker.host = Window(0, host_memory.size)
        self._checker.weights = Window(0, weight_memory.size)
        events: list[Event] = []
        index = 0
        state = instructions, self._checker.state
        is_legal = state in self._legal
        for instruction in instructions:
            fault = FaultCode.NONE if is_legal else self._checker.fault(instruction)
            if fault is not FaultCode.NONE:
                self._forget_weights()
                events.append(Event(EventKind.FAULT, index, fault=fault))
                detail = self._checker.illegal_value(instruction) if fault is FaultCode.ILLEGAL_VALUE else None
                raise _device_fault(fault, index, instruction, events, detail)
            self._checker.advance(instruction)
            opcode = instruction.opcode
            self._execute(opcode, instruction.values)
            if opcode in _TAGGED_EVENTS:
                events.append(Event(_TAGGED_EVENTS[opcode], index, tag=instruction["tag"]))
            elif opcode is Opcode.HALT:
                events.append(Event(EventKind.HALT, index))
            index = 0 if opcode is Opcode.HALT else index + 1
        if not is_legal:
            self._legal[state] = None
            if len(self._legal) > _KEPT_PROGRAMS:
                del self._legal[next(iter(self._legal))]
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

    def scrub(self) -> None:
        """Clear memories, configuration registers and queued weights."""
        for memory in (self.unified_buffer, self.accumulators, self.biases, self.scales, self.tables):
            memory[...] = 0
        self.reset()

    def snapshot(self) -> Snapshot:
        """Copies of the unified buffer and the accumulators."""
        return Snapshot(self.unified_buffer.copy(), self.accumulators.copy())

    def _execute(self, opcode: Opcode | None, values: Mapping[str, int]) -> None:
        match opcode:
            case Opcode.READ_HOST_MEMORY:
                self._read_host_memory(values, self.config.size)
            case Opcode.READ_HOST_MEMORY_ALTERNATE:
                self._read_host_memory(values, self._host_stride)
            case Opcode.WRITE_HOST_MEMORY:
                self._write_host_memory(values, self.config.size)
            case Opcode.WRITE_HOST_MEMORY_ALTERNATE:
                self._write_host_memory(values, self._host_stride)
            case Opcode.LOAD_WEIGHTS:
                self._load_weights(values)
            case Opcode.READ_WEIGHTS:
                self._read_weights(values)
            case Opcode.MATRIX_MULTIPLY:
                self._matrix_multiply(values)
            case Opcode.CONVOLVE:
                self._convolve(values)
            case Opcode.ACTIVATE:
                self._activate(values)
            case Opcode.SET_CONFIGURATION if values["register"] == Register.LOAD_PARAMETERS:
                self._load_parameters()
            case Opcode.SET_CONFIGURATION if values["register"] == Register.LOAD_TABLE:
                self._load_table()
            case Opcode.HALT:
                self._forget_weights()

    @property
    def _host_stride(self) -> int:
        return self._checker.register(Register.HOST_STRIDE)["stride"]

    def _unified_buffer_rows(self, first: int, rows: int) -> NDArray[np.uint8]:
        return self.unified_buffer[first : first + rows]

    def _host_rows(self, values: Mapping[str, int], stride: int) -> NDArray[np.uint8]:
        """The rows of a transfer as a view of host memory, (rows, S); they may overlap."""
        rows, size, first = values["rows"], self.config.size, values["host"]
        return np.lib.stride_tricks.as_strided(self._host[first : first + size], (rows, size), (stride, 1))

    def _read_host_memory(self, values: Mapping[str, int], stride: int) -> None:
        target = self._unified_buffer_rows(values["unified_buffer"], values["rows"])
        target[:] = self._host_rows(values, stride)

    def _write_host_memory(self, values: Mapping[str, int], stride: int) -> None:
        source = self._unified_buffer_rows(values["unified_buffer"], values["rows"])
        target = self._host_rows(values, stride)
        if stride >= self.config.size:
            target[:] = source
            return
        for row, bytes_ in zip(target, source, strict=True):  # in order: where rows overlap, the later one remains
            row[:] = bytes_

    def _read_weights(self, values: Mapping[str, int]) -> None:
        format = self._checker.register(Register.WEIGHT_FORMAT)
        tile_bytes = self.config.tile_bytes
        for tile in range(values["tiles"]):
            signed = tile % 2 == 1 if format["wide"] else bool(format["signed"])
            # A view: weight memory may be read late because nothing writes to it.
            first = values["weights"] + tile * tile_bytes
            bytes_ = self._weights[first : first + tile_bytes].reshape(self.config.size, self.config.size)
            self._queued.append((bytes_, format["zero_point"], signed))

    def _load_weights(self, values: Mapping[str, int]) -> None:
        format = self._checker.register(Register.WEIGHT_FORMAT)
        rows = self._unified_buffer_rows(values["unified_buffer"], self.config.size).copy()
        tile = rows.T if values["transposed"] else rows
        self._queued.append((tile, format["zero_point"], bool(format["signed"])))

    def _take_tile(self) -> NDArray[np.int32]:
        """The next queued tile."""
        return operand(*self._queued.popleft())

    def _forget_weights(self) -> None:
        self._checker.begin_program()
        self._queued.clear()

    def _matrix_multiply(self, values: Mapping[str, int]) -> None:
        self._multiply(values, self._inputs(values, values["rows"]))

    def _convolve(self, values: Mapping[str, int]) -> None:
        plane = self._checker.register(Register.CONVOLUTION_PLANE)
        positions, outside = convolved_positions(plane, values["height"], values["width"], values["dy"], values["dx"])
        inputs = self._inputs(values, plane["height"] * plane["width"], positions)
        if outside.size:
            inputs[outside] = 0
        self._multiply(values, inputs)

    def _inputs(
        self, values: Mapping[str, int], rows: int, positions: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.int32]:
        """Operands of the array at some positions of ``rows`` inputs, (positions, S); a copy."""
        wide = bool(values["wide_input"])
        bytes_ = self._unified_buffer_rows(values["unified_buffer"], rows << wide)
        if wide:
            return elements(bytes_, 0, signed=True, wide=True)[positions]
        format = self._checker.register(Register.INPUT_FORMAT)
        return operand(bytes_[positions], format["zero_point"], bool(format["signed"]))

    def _multiply(self, values: Mapping[str, int], inputs: NDArray[np.int32]) -> None:
        """Inputs times one tile, or two, into as many accumulator rows as there are inputs."""
        weights = self._tile
        if values["next_tile"]:
            weights = self._tile = self._take_tile()
        if values["wide_weights"]:
            self._tile = self._take_tile()
            weights = weights + (self._tile << 8)
        # Floats are exact here, and numpy multiplies integer matrices slowly: sums of 8-bit operands are at most
        # 256 · 255 · 255 < 2**24, those of 16-bit operands less than 256 · 2**15 · 2**17 = 2**40.
        wide = values["wide_input"] or values["wide_weights"]
        real = np.float64 if wide else np.float32
        products = inputs.astype(real) @ weights.astype(real)
        # From int64 to int32 wraps, and so do additions of int32 arrays.
        sums = (products.astype(np.int64) if wide else products).astype(np.int32)
        first = values["accumulator"]
        accumulators = self.accumulators[first : first + len(sums)]
        if values["accumulate"]:
            accumulators += sums
        else:
            accumulators[:] = sums

    def _activate(self, values: Mapping[str, int]) -> None:
        # int32 arrays wrap where they are added and multiplied, as the hardware does.
        total = self._activation_source(values) + self.biases[values["parameters"]]
        if values["operand"] == Operand.MULTIPLY:
            total = total * self._second_operand(values["rows"])
        result = total if values["output"] == OutputFormat.INT32 else self._scaled(values, total)
        if values["table"]:
            result = self.tables[values["table_number"]][result & 0xFF]
        self._write_results(values, result)

    def _activation_source(self, values: Mapping[str, int]) -> NDArray[np.int32]:
        """The values that the bias is added to, (rows, S)."""
        window = self._checker.register(Register.POOLING_WINDOW)
        plane = self._checker.register(Register.POOLING_PLANE)
        pooling, rows, first = values["pooling"], values["rows"], values["source"]
        count = rows if pooling == Pooling.NONE else plane["height"] * plane["width"]
        if values["from_unified_buffer"]:
            source = self._elements(first, count, self._checker.register(Register.SOURCE_FORMAT))
        else:
            source = self.accumulators[first : first + count]
        if pooling == Pooling.NONE:
            return source
        return pooled(source, window, plane, rows, maximum=pooling == Pooling.MAX)

    def _second_operand(self, rows: int) -> NDArray[np.int32]:
        first = self._checker.register(Register.OPERAND_ADDRESS)["unified_buffer"]
        return self._elements(first, rows, self._checker.register(Register.OPERAND_FORMAT))

    def _elements(self, first: int, count: int, format: Mapping[str, int]) -> NDArray[np.int32]:
        wide = bool(format["wide"])
        bytes_ = self._unified_buffer_rows(first, count << wide)
        return elements(bytes_, format["zero_point"], bool(format["signed"]), wide)

    def _scaled(self, values: Mapping[str, int], total: NDArray[np.int32]) -> NDArray[np.int32]:
        scale = self.scales[values["parameters"]]
        format = self._checker.register(Register.OUTPUT_FORMAT)
        limits = format["zero_point"], format["minimum"], format["maximum"]
        if values["operand"] != Operand.ADD:
            return requantize(total, scale, *limits)
        bits = self._checker.register(Register.OPERAND_SCALE)["scale"]
        second_scale = np.array(bits, np.uint32).view(np.float32)
        return add_scaled(total, scale, self._second_operand(values["rows"]), second_scale, *limits)

    def _write_results(self, values: Mapping[str, int], result: NDArray[np.integer]) -> None:
        count = OUTPUT_BYTES[OutputFormat(values["output"])]
        bytes_ = result.astype("<i4").view(np.uint8).reshape(*result.shape, 4)[:, :, :count]
        written = self._unified_buffer_rows(values["unified_buffer"], count * len(result))
        written[:] = bytes_.transpose(0, 2, 1).reshape(written.shape)

    def _load_parameters(self) -> None:
        values = self._checker.register(Register.LOAD_PARAMETERS)
        first, count, size = values["first"], values["count"], self.config.size
        rows = self._unified_buffer_rows(values["unified_buffer"], PARAMETER_ROWS * count)
        columns = np.ascontiguousarray(rows.reshape(count, PARAMETER_ROWS, size).transpose(0, 2, 1))
        self.biases[first : first + count] = columns[:, :, :4].copy().view("<i4")[:, :, 0]
        self.scales[first : first + count] = columns[:, :, 4:].copy().view("<f4")[:, :, 0]

    def _load_table(self) -> None:
        load = self._checker.register(Register.LOAD_TABLE)
        rows = self._unified_buffer_rows(load["unified_buffer"], table_rows(self.config.size))
        self.tables[load["number"]] = rows.reshape(-1)


def _device_fault(
    code: FaultCode, index: int, instruction: Instruction, events: list[Event], detail: str | None
) -> DeviceFault:
    fault = DeviceFault(code, index, instruction, format_instruction(instruction), detail)
    fault.events = events
    _logger.warning("fault: %s", fault)
    return fault
