"""Programs in which an instruction comes while a queue fills up that it has nothing in common with.

The longer the queue, the longer it may take until the instruction is known not to wait for any in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction, Unit, format_named
from tb.directed.instructions import load_tile
from tb.lockstep.case import HALT

__all__ = ["unrelated"]

_PAUSES = 24
"""Numbers of instructions that do nothing, between those of a queue and the last one."""


def unrelated(config: Config) -> Iterator[tuple[str, Unit, list[Instruction]]]:
    """For each pair of units and each length of the queue: a name of the pair, the later unit, and the program."""
    read, write, multiply, activate = map(
        format_named, ("read_host_memory", "write_host_memory", "matrixmultiply", "activate")
    )
    rows = config.unified_buffer_rows
    half, quarter = rows // 2, rows // 4
    products = min(half, config.accumulator_rows - 1)
    # The first instruction of a queue takes long, so that the others have not left when the later one comes.
    queues = {
        Unit.HOST_READ: (read(unified_buffer=half, rows=half), read(unified_buffer=half, rows=1)),
        Unit.HOST_WRITE: (write(unified_buffer=half, rows=half), write(unified_buffer=half, rows=1)),
        Unit.MATRIX: (multiply(unified_buffer=half, rows=products), multiply(unified_buffer=half, rows=1)),
        Unit.ACTIVATION: (
            activate(unified_buffer=half + quarter, source=half, rows=quarter, from_unified_buffer=1),
            activate(unified_buffer=half + quarter, source=half, rows=1, from_unified_buffer=1),
        ),
    }
    later = {
        Unit.HOST_READ: read(rows=1, host=rows * config.size),
        Unit.HOST_WRITE: write(rows=1, host=rows * config.size),
        Unit.MATRIX: multiply(rows=1),
        Unit.ACTIVATION: activate(rows=1, unified_buffer=1, from_unified_buffer=1),
    }
    for queue, (first, others) in queues.items():
        for unit, instruction in later.items():
            if unit is queue:
                continue
            for length in range(config.command_queue_depth):
                program = [*load_tile(config), first, *length * [others], instruction, HALT]
                yield f"{unit.name.lower()} after {queue.name.lower()}", unit, program
    # Only an Activate that reads rows is compared with older ones. It shows with many that have started, but not ended:
    # they wait for a product, and start one after the other soon before the last one comes.
    for pause in range(_PAUSES):
        program = [multiply(rows=products), *(config.command_queue_depth - 1) * [activate(rows=1)]]
        program += [*pause * [format_named("nop")()], activate(rows=1, unified_buffer=1), HALT]
        yield "activation after started ones", Unit.ACTIVATION, [*load_tile(config), *program]
