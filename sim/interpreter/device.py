"""The interpreter: its memories, and the effect of each instruction on them, in order.

It is the reference for every other device. It does not model time; the contents of memories, the events and the faults
are those that the instruction set defines.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.effects import used_registers
from openmxu.arch.events import Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Register
from openmxu.arch.legality import LegalityChecker, Window
from openmxu.device import Device, DeviceFault, Snapshot, in_one_thread
from openmxu.disassembler import format_instruction
from openmxu.sim.interpreter.checks import check_memory, check_program
from openmxu.sim.interpreter.memories import Memories, Step
from openmxu.sim.interpreter.translation import Translator

__all__ = ["Interpreter"]

_logger = logging.getLogger(__name__)

_KEPT_STEPS = 1 << 18
"""Steps of translated programs that are kept, of all programs together: some 800 bytes each."""

_TAGGED_EVENTS = {
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
    Opcode.DEBUG_TAG: EventKind.DEBUG_TAG,
}

_Executed = tuple[Instruction, int, int, int]
"""The first instruction, the number of instructions, and the bytes of host and weight memory: enough to know most
programs again. The hash of all instructions would take as long as some of the steps."""


@dataclass(frozen=True)
class _Translation:
    """A program that is known to be legal.

    Attributes
    ----------
    instructions
        The program.
    steps, events
        What it does.
    before
        The configuration registers that it uses as they were before it.
    after
        The configuration registers that it sets.
    """

    instructions: tuple[Instruction, ...]
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    before: dict[Register, int] = field(default_factory=dict)
    after: dict[Register, int] = field(default_factory=dict)

    def fits(self, instructions: tuple[Instruction, ...], registers: Mapping[Register, int]) -> bool:
        """Whether it is the translation of a program that begins with these configuration registers."""
        return self.instructions == instructions and all(registers[name] == self.before[name] for name in self.before)


class Interpreter(Device):
    """Executes programs sequentially in numpy.

    A program is translated to steps while it is executed for the first time; later executions repeat the steps.

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
        self._memories = Memories(config)
        self.unified_buffer = self._memories.unified_buffer
        self.accumulators = self._memories.accumulators
        self.biases = self._memories.biases
        self.scales = self._memories.scales
        self.tables = self._memories.tables
        self._checker = LegalityChecker(config)
        self._translations: dict[_Executed, _Translation] = {}

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
        self._memories.host, self._memories.weights = host_memory, weight_memory
        self._checker.host = Window(0, host_memory.size)
        self._checker.weights = Window(0, weight_memory.size)
        executed = instructions[0], len(instructions), host_memory.size, weight_memory.size
        known = self._translations.get(executed)
        try:
            if known is None or not known.fits(instructions, self._checker.registers):
                known = self._translated(instructions)
                self._keep(executed, known)
            else:
                for step in known.steps:
                    step()
                self._checker.registers.update(known.after)
        except BaseException:  # a fault, or an interrupt
            self._forget_weights()
            raise
        return list(known.events)

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
        self._memories.clear()
        self.reset()

    def snapshot(self) -> Snapshot:
        """Copies of the unified buffer and the accumulators."""
        return Snapshot(self.unified_buffer.copy(), self.accumulators.copy())

    def _translated(self, instructions: tuple[Instruction, ...]) -> _Translation:
        """Translate a program, and run each step before the next instruction is looked at."""
        translator = Translator(self._memories, self._checker)
        result = _Translation(instructions)
        index = 0
        for instruction in instructions:
            fault = self._checker.fault(instruction)
            if fault is not FaultCode.NONE:
                result.events.append(Event(EventKind.FAULT, index, fault=fault))
                detail = self._checker.illegal_value(instruction) if fault is FaultCode.ILLEGAL_VALUE else None
                raise _device_fault(fault, index, instruction, result.events, detail)
            for register in used_registers(instruction) - result.after.keys():
                result.before[register] = self._checker.registers[register]
            step = self._step(translator, instruction)
            if step is not None:
                step()
                result.steps.append(step)
            opcode = instruction.opcode
            if opcode is Opcode.SET_CONFIGURATION:
                result.after[Register(instruction["register"])] = instruction["value"]
            elif opcode in _TAGGED_EVENTS:
                result.events.append(Event(_TAGGED_EVENTS[opcode], index, tag=instruction["tag"]))
            elif opcode is Opcode.HALT:
                result.events.append(Event(EventKind.HALT, index))
            index = 0 if opcode is Opcode.HALT else index + 1
        return result

    def _step(self, translator: Translator, instruction: Instruction) -> Step | None:
        """The step of the next instruction, which tests of the method replace by those of broken devices."""
        return translator.step(instruction)

    def _keep(self, executed: _Executed, translation: _Translation) -> None:
        """Keep a translation instead of the oldest ones, so that there are at most ``_KEPT_STEPS`` without its own."""
        self._translations.pop(executed, None)
        self._translations[executed] = translation  # the newest
        total = sum(len(kept.steps) for kept in self._translations.values())
        while total > _KEPT_STEPS and len(self._translations) > 1:
            oldest = next(iter(self._translations))
            total -= len(self._translations.pop(oldest).steps)

    def _forget_weights(self) -> None:
        self._checker.begin_program()
        self._memories.loaded.clear()


def _device_fault(
    code: FaultCode, index: int, instruction: Instruction, events: list[Event], detail: str | None
) -> DeviceFault:
    fault = DeviceFault(code, index, instruction, format_instruction(instruction), detail)
    fault.events = events
    _logger.warning("fault: %s", fault)
    return fault
