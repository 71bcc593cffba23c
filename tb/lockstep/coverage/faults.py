"""Coverage of every fault of every instruction, and of units at work when an instruction waits or faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from openmxu.arch.config import Config
from openmxu.arch.effects import unit_of
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, Opcode, Unit, register_format
from tb.lockstep.coverage.bins import Bin, have_load_weights
from tb.lockstep.programs.steps import Step

__all__ = ["FAULTS", "Faults"]

FAULTS = "faults"
UNDER_WAY = "work under way"

_NEAR = 4
"""Number of preceding instructions whose units are assumed to be still busy."""

_WAITING = (Opcode.HALT, Opcode.SYNCHRONIZE, Opcode.HOST_SYNCHRONIZE, Opcode.INTERRUPT_HOST)

_TRANSFERS = [format.name for format in FORMATS if "Host_Memory" in format.name]
_MULTIPLICATIONS = ["MatrixMultiply", "Convolve"]
_PLACES: dict[FaultCode, list[str]] = {
    FaultCode.UNKNOWN_OPCODE: ["a word"],
    # Not Halt: the host recognizes the end of a program by this opcode alone.
    FaultCode.RESERVED_BITS: [format.name for format in FORMATS if format.opcode is not Opcode.HALT],
    FaultCode.UNIMPLEMENTED: ["Activate"],
    FaultCode.ILLEGAL_VALUE: [
        *_TRANSFERS,
        *_MULTIPLICATIONS,
        "Activate",
        "Read_Weights",
        "Load_Weights",
        "Synchronize",
        "an unknown register",
        *(register.name for register in REGISTERS if register.used_mask.bit_length() < 64),
    ],
    FaultCode.UNIFIED_BUFFER_RANGE: [
        *(*_TRANSFERS, "Load_Weights", *_MULTIPLICATIONS),
        *("Activate", "LOAD_PARAMETERS", "LOAD_TABLE"),
    ],
    FaultCode.ACCUMULATOR_RANGE: [*_MULTIPLICATIONS, "Activate"],
    FaultCode.PARAMETER_RANGE: ["Activate", "LOAD_PARAMETERS"],
    FaultCode.HOST_WINDOW: _TRANSFERS,
    FaultCode.WEIGHT_WINDOW: ["Read_Weights"],
    FaultCode.NO_TILE: _MULTIPLICATIONS,
    FaultCode.WEIGHT_QUEUE_FULL: ["Read_Weights", "Load_Weights"],
    FaultCode.UNIFIED_BUFFER_OVERLAP: ["Activate"],
}


class Faults:
    """Observes faults and waiting instructions in a case."""

    def __init__(self) -> None:
        self._recent: deque[Unit | None] = deque(maxlen=_NEAR)

    @staticmethod
    def declared(configs: Sequence[Config]) -> dict[str, list[str]]:
        """All bins."""
        return {
            FAULTS: [
                f"{code.name} of {place}"
                for code, places in _PLACES.items()
                for place in places
                if place != "Load_Weights" or have_load_weights(configs)
            ],
            UNDER_WAY: [
                f"{unit.name} at {name}"
                for unit in Unit
                for name in ("a fault", *(format.name for format in FORMATS if format.opcode in _WAITING))
            ],
        }

    def observe(self, step: Step) -> Iterator[Bin]:
        """The bins hit by an instruction."""
        if step.fault is FaultCode.NONE and step.opcode not in _WAITING:
            self._recent.append(unit_of(step.instruction))
            return
        name = step.instruction.name if step.fault is FaultCode.NONE else "a fault"
        for unit in {unit for unit in self._recent if unit is not None}:
            yield UNDER_WAY, f"{unit.name} at {name}"
        self._recent.clear()
        if step.fault is not FaultCode.NONE:
            yield FAULTS, f"{step.fault.name} of {_place(step)}"


def _place(step: Step) -> str:
    if step.fault is FaultCode.UNKNOWN_OPCODE:
        return "a word"
    if step.opcode is Opcode.SET_CONFIGURATION and step.fault is not FaultCode.RESERVED_BITS:
        register = register_format(step.values["register"])
        return "an unknown register" if register is None else register.name
    return step.instruction.name
