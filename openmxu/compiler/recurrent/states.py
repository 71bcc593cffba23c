"""States that stay in the unified buffer from one execution of a program to the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from openmxu.compiler.errors import ModelError
from openmxu.compiler.ir.model import Model
from openmxu.compiler.ir.network import Network, Port
from openmxu.compiler.recurrent.cell import Kept, Recurrent
from openmxu.compiler.recurrent.unused import without_unused

__all__ = ["keep_states"]


def keep_states(model: Model, states: Mapping[str, str]) -> Model:
    """Let inputs and outputs of the model be states.

    Parameters
    ----------
    states
        Inputs, each with its output.

    Raises
    ------
    ModelError
        An input begins no recurrent cell, or the output is not what the cell makes of it.
    """
    if len(model.networks) > 1:
        raise ModelError(
            f"states stay on the device in a model that it computes without a break, but this one has "
            f"{len(model.networks)} segments on the device"
        )
    network = model.networks[0]
    for given, made in states.items():
        network = _keep(network, given, made)
    inputs = tuple(spec for spec in model.inputs if spec.name not in states)
    outputs = tuple(spec for spec in model.outputs if spec.name not in states.values())
    if not inputs or not outputs:
        raise ModelError("a model must have other inputs and outputs beside its states")
    for segment in model.host_segments:
        for spec in segment.inputs:
            if spec.name in states or spec.name in states.values():
                raise ModelError(f"{spec.name!r} cannot be a state: the host uses it")
    segments = tuple(network if isinstance(segment, Network) else segment for segment in model.segments)
    return dataclasses.replace(model, segments=segments, inputs=inputs, outputs=outputs)


def _keep(network: Network, given: str, made: str) -> Network:
    for index, operation in enumerate(network.operations):
        if not isinstance(operation, Recurrent):
            continue
        for value, tensor in operation.initial.items():
            port = _port(network.inputs, tensor)
            if port is not None and port.host.name == given:
                kept = _kept(operation, value, port, _port(network.outputs, operation.final.get(value)), made)
                return _replaced(network, index, kept, tensor, operation.final[value])
    raise ModelError(f"no LSTM or GRU begins with the input {given!r}: it cannot be a state")


def _port(ports: tuple[Port, ...], tensor: str | None) -> Port | None:
    return next((port for port in ports if port.tensor == tensor), None)


def _kept(operation: Recurrent, value: str, given: Port, output: Port | None, made: str) -> Recurrent:
    if output is None or output.host.name != made:
        raise ModelError(
            f"node {operation.name!r}: the output {made!r} is not what it makes of {given.host.name!r}; it cannot be "
            "its next state"
        )
    initial = {name: tensor for name, tensor in operation.initial.items() if name != value}
    sources = (operation.sources[0], *dict.fromkeys(initial.values()))
    kept = {**operation.kept, value: Kept(given.host, made)}
    return dataclasses.replace(operation, sources=sources, initial=initial, kept=kept)


def _replaced(network: Network, index: int, operation: Recurrent, given: str, made: str) -> Network:
    """The network with another cell, which does not exchange a value with the host any more."""
    operations = [*network.operations]
    operations[index] = operation
    if any(given in item.sources for item in operations):
        raise ModelError(f"node {operation.name!r}: its state {given!r} has other uses; it cannot stay on the device")
    changed = dataclasses.replace(
        network,
        inputs=tuple(port for port in network.inputs if port.tensor != given),
        outputs=tuple(port for port in network.outputs if port.tensor != made),
        operations=tuple(operations),
    )
    return without_unused(changed)
