"""Reports: the cost of each layer of a program, and its bottleneck."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import Unit
from openmxu.program import Program

if TYPE_CHECKING:
    from openmxu.sim.cycle_model import Prediction

__all__ = ["LayerReport", "Report", "report"]

_LATENCY = "latency"
_BUSY_PART = 0.5


@dataclass(frozen=True)
class LayerReport:
    """The cost of a layer, or of all layers together, in one execution.

    Attributes
    ----------
    name, kind
        As in :class:`~openmxu.layer.Layer`.
    instructions
        Number of its instructions.
    cycles
        Predicted. Layers overlap: a cycle in which the array works counts for the layer that it computes; any other
        cycle counts for the layer whose multiplication comes next or, for a layer without multiplications, whose work
        ends next. So the layers' cycles add up to the program's.
    multiply_adds
        Useful ones; padding does not count.
    utilization
        Useful multiply-adds ÷ (S² × cycles).
    host_read_bytes, host_write_bytes, weight_bytes
        Bytes of the beats on each port.
    unified_buffer_rows
        The high-water mark: one more than the last row that it touches.
    busy
        Cycles for which it occupies the array, the weight path from memory to the array, the busier direction of the
        host port, the activation unit and the dispatcher.
    limit
        The busiest of these; ``latency`` if even that is busy for less than half of the cycles, because instructions
        wait for each other's results.
    """

    name: str
    kind: str
    instructions: int
    cycles: int
    multiply_adds: int
    utilization: float
    host_read_bytes: int
    host_write_bytes: int
    weight_bytes: int
    unified_buffer_rows: int
    busy: Mapping[str, int]
    limit: str


@dataclass(frozen=True)
class Report:
    """The cost of a program.

    Attributes
    ----------
    size, batch, memory_latency
        Size of the array; batch elements of one execution; assumed latency of the memories in cycles.
    layers
        In the order of the network.
    total
        All of them together.
    host_before, host_after
        Names and operators of the nodes that the host computes; they take none of the cycles.
    """

    size: int
    batch: int
    memory_latency: int
    layers: tuple[LayerReport, ...]
    total: LayerReport
    host_before: tuple[str, ...]
    host_after: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists and dictionaries, for JSON."""
        return dataclasses.asdict(self)


def report(program: Program, *, memory_latency: int = 4) -> Report:
    """Report the cost of each layer of a program on the hardware, by the cycle model.

    Parameters
    ----------
    program
        A program compiled for any configuration.
    memory_latency
        Cycles from a request to the first beat of its data.

    Raises
    ------
    ValueError
        The latency is less than 1.
    """
    # Imported here because the cycle model imports the hardware description, which compiling alone does not need.
    from openmxu.sim.cycle_model import predict

    prediction = predict(program.instructions, program.config, memory_latency=memory_latency)
    cycles = _cycles_by_layer(program, prediction)
    layers = tuple(
        _layer(program, prediction, program.layer_numbers == number, layer.name, layer.kind, count, layer.multiply_adds)
        for number, (layer, count) in enumerate(zip(program.layers, cycles, strict=True))
    )
    everything = np.ones(len(program.instructions), np.bool_)
    total = _layer(program, prediction, everything, "all layers", "", prediction.cycles, program.multiply_adds)
    return Report(
        size=program.config.size,
        batch=program.batch,
        memory_latency=memory_latency,
        layers=layers,
        total=total,
        host_before=program.before.nodes if program.before is not None else (),
        host_after=program.after.nodes if program.after is not None else (),
    )


def _layer(
    program: Program,
    prediction: Prediction,
    own: NDArray[np.bool_],
    name: str,
    kind: str,
    cycles: int,
    multiply_adds: int,
) -> LayerReport:
    """The report of the instructions ``own``."""
    demand = prediction.demand

    def total(values: NDArray[np.int64]) -> int:
        return int(values[own].sum())

    busy = {
        "array": total(demand.array),
        "weights": total(demand.weights),
        "host": max(total(demand.host_read), total(demand.host_write)),
        "activation": total(demand.activation),
        "dispatch": total(demand.dispatch),
    }
    limit = max(busy, key=busy.__getitem__)
    return LayerReport(
        name=name,
        kind=kind,
        instructions=int(own.sum()),
        cycles=cycles,
        multiply_adds=multiply_adds,
        utilization=multiply_adds / (program.config.size**2 * cycles) if cycles else 0.0,
        host_read_bytes=total(demand.host_read_bytes),
        host_write_bytes=total(demand.host_write_bytes),
        weight_bytes=total(demand.weight_bytes),
        unified_buffer_rows=int(demand.unified_buffer_rows[own].max(initial=0)),
        busy=busy,
        limit=limit if busy[limit] >= _BUSY_PART * cycles else _LATENCY,
    )


def _cycles_by_layer(program: Program, prediction: Prediction) -> list[int]:
    """Distribute the program's cycles among its layers."""
    main = np.zeros(len(program.instructions), np.bool_)
    for number in range(len(program.layers)):
        own = program.layer_numbers == number
        for unit in (Unit.MATRIX, Unit.ACTIVATION, Unit.HOST_READ, Unit.HOST_WRITE):
            executes = own & (prediction.unit == unit)
            if executes.any():
                main |= executes
                break
    shares = np.zeros(len(program.layers), np.int64)
    if not main.any():
        return shares.tolist()
    ends = prediction.done.copy()
    multiplications = np.flatnonzero(prediction.unit == Unit.MATRIX)
    ends[multiplications] = prediction.begun[multiplications] + prediction.demand.array[multiplications]
    # Work that ends during a multiplication counts up to the beginning of that: the array's cycles belong to its layer.
    others = np.flatnonzero(main & (prediction.unit != Unit.MATRIX))
    if len(multiplications):
        last = np.searchsorted(prediction.begun[multiplications], ends[others]) - 1
        working = (last >= 0) & (ends[others] <= ends[multiplications[last]])
        ends[others[working]] = prediction.begun[multiplications[last[working]]]
    numbers = np.flatnonzero(main)
    numbers = numbers[np.lexsort((prediction.unit[numbers] != Unit.MATRIX, ends[numbers]))]
    spans = np.diff(ends[numbers], prepend=0)
    # Cycles after the last of them belong to its layer.
    spans[-1] += prediction.cycles - ends[numbers[-1]]
    np.add.at(shares, program.layer_numbers[numbers], spans)
    return shares.tolist()
