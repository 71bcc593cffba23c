"""Random legal programs, biased towards what overlapping hardware gets wrong.

The units meet in few, small, overlapping ranges of rows, so that nearly every instruction waits for, or must not
overtake, an earlier one. Ranges touch both ends of the memories, counts are mostly tiny, and each case prefers other
instructions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, OutputFormat, Register, format_named, register_format
from openmxu.arch.legality import PARAMETER_ROWS
from openmxu.sim.lockstep.case import HALT, Case
from openmxu.sim.lockstep.contents import DATA_ROWS, PARAMETER_BLOCKS, host_contents, weight_contents
from openmxu.sim.lockstep.faulting import FAULT_CODES, faulting_instructions

__all__ = ["generate"]

_MOST_ROWS = 100
_REMEMBERED_RANGES = 6


def generate(config: Config, seed: int, length: int, *, fault_probability: float = 0.0) -> Case:
    """A random case.

    Parameters
    ----------
    config
        Sizes of the device; a unified buffer of at least 8 rows.
    seed
        The same arguments give the same case.
    length
        How many steps the case has, each of one to three instructions.
    fault_probability
        How probable it is that a program, in the middle of the case or at its end, runs into a fault.

    Returns
    -------
    A case without faults but for those asked for; it ends with Halt.
    """
    generator = _Generator(config, seed)
    generator.begin()
    for _ in range(length):
        generator.step()
    if generator.rng.random() < fault_probability:
        generator.fault()
        for _ in range(int(generator.rng.integers(0, 6))):
            generator.step()
    generator.emit(HALT)
    return generator.case()


class _Ranges:
    """Random ranges of a memory's places: near recent ones, at the ends, around few fixed places."""

    def __init__(self, places: int, rng: np.random.Generator) -> None:
        self._places = places
        self._rng = rng
        self._hot = rng.integers(0, places, 2)
        self._recent: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED_RANGES)

    def choose(self, count: int, alignment: int = 1) -> int:
        """The first of ``count`` places, a multiple of ``alignment``; remembers the range."""
        rng = self._rng
        last = self._places - count
        jitter = int(rng.integers(-3, 4)) * alignment
        kind = rng.random()
        if kind < 0.55 and self._recent:
            near, length = self._recent[rng.integers(len(self._recent))]
            first = near + int(rng.choice([0, 0, jitter, length, length - alignment, alignment - count]))
        elif kind < 0.7:
            first = abs(jitter)
        elif kind < 0.85:
            first = last - max(0, jitter)
        else:
            first = int(rng.choice(self._hot)) + jitter
        first = min(max(first, 0), last) // alignment * alignment
        self._recent.append((first, count))
        return first


class _Generator:
    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self.rng = np.random.default_rng(seed)
        self._case = Case(config, (), host_contents(config, self.rng), weight_contents(config, self.rng), seed)
        self.checker = self._case.checker()
        self._instructions: list[Instruction] = []
        self._unified_buffer = _Ranges(config.unified_buffer_rows, self.rng)
        self._accumulators = _Ranges(config.accumulator_rows, self.rng)
        self._host = _Ranges(self._case.host_memory.size, self.rng)
        self._weights = _Ranges(self._case.weight_memory.size, self.rng)
        self._steps: dict[Callable[[], None], float] = {
            self._transfer: 8,
            self._read_weights: 2,
            self._multiply: 6,
            self._activate: 5,
            self._load_parameters: 0.8,
            self._set_format: 1.5,
            self._synchronize: 0.5,
            self._say: 0.8,
            self._nop: 0.3,
            self._halt: 0.4,
        }
        weights = np.array(list(self._steps.values())) * self.rng.exponential(1, len(self._steps))
        self._chances = weights / weights.sum()

    def case(self) -> Case:
        """Everything emitted up to now."""
        return self._case.with_instructions(self._instructions)

    def emit(self, instruction: Instruction) -> None:
        """Append a legal instruction."""
        fault = self.checker.check(instruction)
        assert fault is FaultCode.NONE, f"{instruction.format.name} {instruction.values} faults: {fault.name}"
        self._instructions.append(instruction)

    def begin(self) -> None:
        """What most programs begin with: formats and parameters, and memories that are not all zeros."""
        for register in (Register.INPUT_FORMAT, Register.WEIGHT_FORMAT, Register.OUTPUT_FORMAT):
            if self._probably(0.95):
                self._set(register, **self._format_values(register))
        if self._probably(0.9):
            for parameter_set in self._used_parameter_sets:
                self._load_parameters(parameter_set)
        if self._probably(0.8):
            self._fill()

    def _fill(self) -> None:
        """Data in the first unified buffer rows, and sums in every accumulator."""
        rows = min(DATA_ROWS, self.config.unified_buffer_rows)
        first = PARAMETER_BLOCKS * PARAMETER_ROWS * self.config.size
        self.emit(format_named("Read_Host_Memory")(rows=rows, host=first))
        self._read_weights()
        rows = min(rows, self.config.accumulator_rows)
        for accumulator in range(0, self.config.accumulator_rows, rows):
            rows = min(rows, self.config.accumulator_rows - accumulator)
            self.emit(format_named("MatrixMultiply")(next_tile=accumulator == 0, accumulator=accumulator, rows=rows))

    def step(self) -> None:
        """Append the next one to three instructions."""
        list(self._steps)[self.rng.choice(len(self._steps), p=self._chances)]()

    def fault(self) -> None:
        """Append a fault, and something behind it that is dropped."""
        code = FAULT_CODES[self.rng.integers(len(FAULT_CODES))]
        *before, faulting = faulting_instructions(code, self.checker, self.rng)
        for instruction in before:
            self.emit(instruction)
        assert self.checker.check(faulting) is code, f"{faulting} does not raise {code.name}"
        self.checker.begin_program()
        earlier = [instruction for instruction in self._instructions if instruction != HALT]
        dropped = [earlier[self.rng.integers(len(earlier))] for _ in range(self.rng.integers(0, 5)) if earlier]
        self._instructions += [faulting, *dropped, HALT]

    def _probably(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def _count(self, most: int) -> int:
        """A number of rows from 1 to ``most``, mostly small."""
        limit = int(self.rng.choice([1, 3, 8, 24, _MOST_ROWS], p=[0.2, 0.25, 0.3, 0.2, 0.05]))
        return int(self.rng.integers(1, max(1, min(limit, most)) + 1))

    def _set(self, register: Register, **values: int) -> None:
        value = register_format(register).pack(**values)
        self.emit(format_named("Set_Configuration")(register=register, value=value))

    def _format_values(self, register: Register) -> dict[str, int]:
        rng = self.rng
        if register is not Register.OUTPUT_FORMAT:
            signed = int(rng.integers(2))
            low = -128 if signed else 0
            # The middle keeps sums small enough for outputs that do not saturate; the ends need all 9 bits.
            places = [low + 128, low, low + 255, rng.integers(low, low + 256)]
            return {"signed": signed, "zero_point": int(rng.choice(places, p=[0.6, 0.1, 0.1, 0.2]))}
        field = register_format(register).field("zero_point")
        kind = rng.random()
        if kind < 0.88:
            minimum, maximum = ((0, 255), (-128, 127))[rng.integers(2)]
            if self._probably(0.3):
                minimum, maximum = sorted(rng.integers(minimum, maximum + 1, 2).tolist())
            return {"zero_point": int(rng.integers(minimum, maximum + 1)), "minimum": minimum, "maximum": maximum}
        places = [field.minimum, field.maximum, -300, 300, int(rng.integers(field.minimum, field.maximum + 1))]
        return {name: int(rng.choice(places)) for name in ("zero_point", "minimum", "maximum")}

    def _set_format(self) -> None:
        register = (Register.INPUT_FORMAT, Register.WEIGHT_FORMAT, Register.OUTPUT_FORMAT)[self.rng.integers(3)]
        self._set(register, **self._format_values(register))

    def _transfer(self) -> None:
        name = ("Read_Host_Memory", "Write_Host_Memory")[self.rng.integers(2)]
        size = self.config.size
        alignment = self.config.host_alignment
        rows = self._count(self.config.unified_buffer_rows)
        stride = size
        if self._probably(0.35):
            name += "_Alternate"
            if self._probably(0.7):
                self._set_stride()
            stride = self.checker.register(Register.HOST_STRIDE)["stride"]
        room = self._case.host_memory.size - size
        if rows > 1 and (rows - 1) * stride > room:
            rows = 1 + room // stride
        host = self._host.choose((rows - 1) * stride + size, alignment)
        self.emit(format_named(name)(unified_buffer=self._unified_buffer.choose(rows), rows=rows, host=host))

    def _set_stride(self) -> None:
        size, alignment = self.config.size, self.config.host_alignment
        most = register_format(Register.HOST_STRIDE).field("stride").maximum
        strides = [0, alignment, size, size + alignment, 2 * size, 5 * alignment, most // alignment * alignment]
        self._set(Register.HOST_STRIDE, stride=int(self.rng.choice(strides, p=[0.1, 0.2, 0.1, 0.2, 0.2, 0.17, 0.03])))

    def _read_weights(self) -> None:
        if len(self.checker.outstanding) == self.config.weight_queue_depth:
            self._multiply()
            return
        most = min(self._case.weight_memory.size // self.config.tile_bytes, self.config.weight_fifo_tiles + 2)
        tiles = int(self.rng.choice([1, 2, self.rng.integers(1, most + 1)], p=[0.5, 0.2, 0.3]))
        address = self._weights.choose(tiles * self.config.tile_bytes, self.config.weight_alignment)
        self.emit(format_named("Read_Weights")(tiles=tiles, weights=address))

    def _multiply(self) -> None:
        if not self.checker.outstanding and not self.checker.tile_in_array:
            self._read_weights()
        rows = self._count(min(self.config.unified_buffer_rows, self.config.accumulator_rows))
        next_tile = bool(self.checker.outstanding) and (not self.checker.tile_in_array or self._probably(0.6))
        instruction = format_named("MatrixMultiply")(
            accumulate=self._probably(0.5),
            next_tile=next_tile,
            unified_buffer=self._unified_buffer.choose(rows),
            accumulator=self._accumulators.choose(rows),
            rows=rows,
        )
        self.emit(instruction)

    def _activate(self) -> None:
        output = OutputFormat.INT32 if self._probably(0.25) else OutputFormat.BYTE
        written = 4 if output is OutputFormat.INT32 else 1
        rows = self._count(min(self.config.unified_buffer_rows // written, self.config.accumulator_rows))
        instruction = format_named("Activate")(
            unified_buffer=self._unified_buffer.choose(written * rows),
            accumulator=self._accumulators.choose(rows),
            rows=rows,
            parameters=self._parameter_set(),
            output=output,
        )
        self.emit(instruction)

    @property
    def _used_parameter_sets(self) -> tuple[int, ...]:
        last = self.config.parameter_sets - 1
        return tuple(sorted({0, min(1, last), last}))

    def _parameter_set(self) -> int:
        return int(self.rng.choice(self._used_parameter_sets))

    def _load_parameters(self, first: int | None = None) -> None:
        """Mostly brings a prepared set from host memory first; sometimes loads whatever lies in the unified buffer."""
        if first is None:
            first = self._parameter_set()
        most = min(3, self.config.parameter_sets - first, self.config.unified_buffer_rows // PARAMETER_ROWS)
        count = int(self.rng.integers(1, most + 1))
        row = self._unified_buffer.choose(PARAMETER_ROWS * count)
        if self._probably(0.85):
            block = int(self.rng.integers(0, PARAMETER_BLOCKS - count + 1))
            self.emit(
                format_named("Read_Host_Memory")(
                    unified_buffer=row,
                    rows=PARAMETER_ROWS * count,
                    host=block * PARAMETER_ROWS * self.config.size,
                )
            )
        self._set(Register.LOAD_PARAMETERS, unified_buffer=row, first=first, count=count)

    def _synchronize(self) -> None:
        self.emit(format_named("Synchronize")(units=int(self.rng.integers(0, 32))))

    def _say(self) -> None:
        name = ("Host_Synchronize", "Interrupt_Host", "Debug_Tag", "Debug_Tag")[self.rng.integers(4)]
        self.emit(format_named(name)(tag=int(self.rng.integers(0, 2**32))))

    def _nop(self) -> None:
        self.emit(format_named("Nop")())

    def _halt(self) -> None:
        self.emit(HALT)
