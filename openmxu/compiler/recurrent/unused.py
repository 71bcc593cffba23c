"""Results of recurrent cells that nobody wants."""

from __future__ import annotations

import dataclasses

from openmxu.compiler.ir.network import Network
from openmxu.compiler.recurrent.cell import Recurrent

__all__ = ["without_unused"]


def without_unused(network: Network) -> Network:
    """The network without those results of recurrent cells that nothing uses."""
    used = {source for operation in network.operations for source in operation.sources}
    used.update(output.tensor for output in network.outputs)
    operations = [_without_unused(item, used) if isinstance(item, Recurrent) else item for item in network.operations]
    # A cell may be left without any use by a node that takes a step of its sequence from elsewhere.
    kept = tuple(item for item in operations if item.targets)
    return dataclasses.replace(network, operations=kept)


def _without_unused(operation: Recurrent, used: set[str]) -> Recurrent:
    final = {value: tensor for value, tensor in operation.final.items() if tensor in used}
    sequence = operation.sequence if operation.sequence in used else None
    kept = dataclasses.replace(operation, sequence=sequence, final=final)
    return dataclasses.replace(kept, target=next(iter(kept.targets), operation.target))
