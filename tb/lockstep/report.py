"""Report of a failing case: configuration, seed, difference, and the program as assembly."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.disassembler import format_instruction
from tb.lockstep.case import HALT, Case
from tb.lockstep.comparison import Mismatch

__all__ = ["report"]


def report(case: Case, mismatch: Mismatch, found: Mismatch, original: int) -> str:
    """The report of a shrunk case.

    Parameters
    ----------
    case, mismatch
        The shrunk case and its difference.
    found
        The difference before shrinking.
    original
        Number of instructions before shrinking.
    """
    lines = [
        f"# difference: {found}",
        f"# seed {case.seed}, shrunk from {original} to {len(case.instructions)} instructions",
        f"# config: {_config(case.config)}",
        f"# host memory {case.host_memory.size} bytes, weight memory {case.weight_memory.size} bytes, from the seed",
        f"# difference now: {mismatch}",
        *_program(case),
    ]
    return "\n".join(lines)


def _config(config: Config) -> str:
    default = Config().as_dict()
    changes = {name: value for name, value in config.as_dict().items() if name == "size" or value != default[name]}
    return f"Config({', '.join(f'{name}={value}' for name, value in changes.items())})"


def _program(case: Case) -> list[str]:
    lines = []
    index = 0
    for instruction, fault in case.outcomes():
        note = "dropped" if fault is None else fault.name if fault else ""
        text = f"{format_instruction(instruction)}  # {index}"
        lines.append(f"{text} {note}".rstrip())
        index = 0 if instruction == HALT else index + 1
    return lines
