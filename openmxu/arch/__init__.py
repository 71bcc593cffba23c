"""Parameters, instruction set, numerics and rules of the machine; imports nothing else of openmxu."""

from openmxu.arch.config import PRESETS, Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode, Register, Unit

__all__ = ["PRESETS", "Config", "FaultCode", "Instruction", "Opcode", "Register", "Unit"]
