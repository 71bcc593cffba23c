"""The order in which the phases of the blocks of a step are done, where one part of the batch is all there is."""

from __future__ import annotations

from collections.abc import Sequence

from openmxu.compiler.recurrent.cell import Recurrent

__all__ = ["block_order"]

_Turn = tuple[int, int]
"""A phase and a block of it."""


def block_order(operation: Recurrent, blocks: Sequence[Sequence[range]]) -> list[_Turn]:
    """Phases and numbers of their blocks, each behind all that it needs of earlier phases.

    A later phase of a block comes as soon as a turn of the first phase, which takes longest, lies between it and what
    it needs: so the array does not wait for the activation unit, and little is left when the last sums are made.
    """
    needed = {
        (phase, block): _needed(operation, blocks, (phase, block))
        for phase, of_phase in enumerate(blocks)
        for block in range(len(of_phase))
    }
    order: list[_Turn] = []
    # What came before the last turn of the first phase.
    settled: set[_Turn] = set()
    while len(order) < len(needed):
        # Phases are in order, and blocks within them: the first one of each phase that is left comes next there.
        first = {turn[0]: turn for turn in reversed(needed) if turn not in order}
        possible = [turn for _, turn in sorted(first.items()) if needed[turn] <= set(order)]
        ready = [turn for turn in possible if needed[turn] <= settled]
        turn = ready[-1] if ready else possible[0]
        if turn[0] == 0:
            settled = set(order)
        order.append(turn)
    return order


def _needed(operation: Recurrent, blocks: Sequence[Sequence[range]], turn: _Turn) -> set[_Turn]:
    """The turns of earlier phases that make what a turn uses."""
    phase, number = operation.phases[turn[0]], turn[1]
    block = blocks[turn[0]][number]
    multiplied = {value for item in phase.sums for value in item.weights}
    used = {value for item in phase.sums for value in item.factors}
    used |= {name for step in phase.steps for name in (step.source, step.operand) if name is not None}
    needed = set()
    for earlier in range(turn[0]):
        made = {step.target for step in operation.phases[earlier].steps}
        for index, other in enumerate(blocks[earlier]):
            overlaps = block.start < other.stop and other.start < block.stop
            if multiplied & made or (overlaps and used & made):
                needed.add((earlier, index))
    return needed
