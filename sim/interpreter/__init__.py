"""The functional interpreter: a device in numpy that executes one instruction after the other."""

from openmxu.sim.interpreter.checks import check_memory, check_program
from openmxu.sim.interpreter.device import Interpreter

__all__ = ["Interpreter", "check_memory", "check_program"]
