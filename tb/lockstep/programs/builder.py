"""A random case under construction: its instructions, the resulting state, and ranges for the next instructions."""

from __future__ import annotations

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, Register, format_named
from tb.lockstep.case import HALT, Case
from tb.lockstep.programs.contents import host_contents, weight_contents
from tb.lockstep.programs.ranges import Ranges

__all__ = ["Builder"]

_MOST_ROWS = 100


class Builder:
    """Collects legal instructions.

    Parameters
    ----------
    config
        Configuration of the device.
    seed
        Seed of all random choices.

    Attributes
    ----------
    checker : LegalityChecker
        The state after all instructions so far.
    unified_buffer, accumulators, host, weights : Ranges
        Ranges of rows or bytes for the instructions of this case.
    parameter_kinds : dict
        The kind of parameters, of ``PARAMETER_KINDS``, that was loaded last into each parameter set.
    """

    def __init__(self, config: Config, seed: int) -> None:
        self.config = config
        self.rng = np.random.default_rng(seed)
        host, weights = host_contents(config, self.rng), weight_contents(config, self.rng)
        self._case = Case(config, (), host, weights, seed)
        self.checker = self._case.checker()
        self._instructions: list[Instruction] = []
        self.unified_buffer = Ranges(config.unified_buffer_rows, self.rng)
        self.accumulators = Ranges(config.accumulator_rows, self.rng)
        self.host = Ranges(host.size, self.rng)
        self.weights = Ranges(weights.size, self.rng)
        self.parameter_kinds: dict[int, str] = {}

    def case(self) -> Case:
        """The case with all instructions so far."""
        return self._case.with_instructions(self._instructions)

    def emit(self, name: str, **fields: int) -> None:
        """Append a legal instruction, given by its name and fields."""
        self.append(format_named(name)(**fields))

    def append(self, instruction: Instruction) -> None:
        """Append a legal instruction."""
        fault = self.checker.check(instruction)
        assert fault is FaultCode.NONE, f"{instruction.name} {instruction.values} faults: {fault.name}"
        self._instructions.append(instruction)

    def append_fault(self, instruction: Instruction, code: FaultCode) -> None:
        """Append an instruction that faults, and some instructions after it that are dropped."""
        fault = self.checker.check(instruction)
        assert fault is code, f"{instruction} raises {fault.name} instead of {code.name}"
        self.checker.begin_program()
        earlier = [instruction for instruction in self._instructions if instruction != HALT]
        dropped = [earlier[self.rng.integers(len(earlier))] for _ in range(self.rng.integers(0, 5)) if earlier]
        self._instructions += [instruction, *dropped, HALT]

    def set(self, register: Register, **fields: int) -> None:
        """Write a configuration register."""
        self.emit("Set_Configuration", register=register, value=REGISTERS[register].pack(**fields))

    def has(self, opcode: Opcode, field: str | None = None) -> bool:
        """Whether the profile of the device has an instruction, and the instruction has a field."""
        return self.config.features.has(opcode, field)

    def has_register(self, register: Register) -> bool:
        """Whether the profile of the device has a configuration register."""
        return self.config.features.register(register) is not None

    def register(self, register: Register) -> dict[str, int]:
        """The current fields of a configuration register."""
        return self.checker.register(register)

    def probably(self, probability: float) -> bool:
        """Return true with this probability."""
        return bool(self.rng.random() < probability)

    def one_of(self, *values: int, weights: tuple[float, ...] | None = None) -> int:
        """One of the values, with equal or the given weights."""
        shares = None if weights is None else np.array(weights) / sum(weights)
        return int(self.rng.choice(values, p=shares))

    def between(self, low: int, high: int) -> int:
        """A random number from ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high + 1))

    def count(self, most: int) -> int:
        """A random number of rows from 1 to ``most``, usually small."""
        limit = self.one_of(1, 3, 8, 24, _MOST_ROWS, weights=(0.2, 0.25, 0.3, 0.2, 0.05))
        return self.between(1, max(1, min(limit, most)))

    def used_parameter_sets(self) -> tuple[int, ...]:
        """The first two sets and the last one."""
        last = self.config.parameter_sets - 1
        return tuple(sorted({0, min(1, last), last}))
