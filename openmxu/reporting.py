"""Reports: the cost of each layer of a program, and its bottleneck."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.isa import Unit
from openmxu.html_table import html_table
from openmxu.program import Program
from openmxu.report_table import REPORT_HEADINGS, report_rows, report_title
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_segment import HostSegment

if TYPE_CHECKING:
    from openmxu.profiling import Timeline
    from openmxu.sim.cycle_model import Prediction
    from openmxu.sim.memory_rate import Rate

__all__ = [
    "LayerReport",
    "Report",
    "SegmentReport",
    "recorded_report",
    "report",
    "segment_reports",
    "total_reports",
]

_LATENCY, _DISPATCH = "latency", "dispatch"
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
        Predicted. Layers overlap: a cycle in which the array works, or waits for its weights, counts for the layer that
        it computes; any other cycle counts for the layer whose multiplication comes next or, for a layer without
        multiplications, whose work ends next. So the layers' cycles add up to the program's.
    kinds
        The cycles by kind, named as the hardware's counters: ``array_active``, ``weight_stall``, ``weight_shift`` and
        ``non_matrix`` add up to ``cycles``. ``raw_stall`` and ``input_stall`` are those in which a multiplication of
        the layer waits for the activation unit, and for the host reader; in the whole program they are a part of
        ``non_matrix``.
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
    bound, bound_by, bound_ratio
        The roofline: cycles of the busiest of these apart from the dispatcher, of which a better schedule can spare
        none; the name of that; and their share of the cycles, 1 on the roofline. Segments follow each other: the
        bound of a whole program is the sum of theirs, and may be of several parts, of which this is the busiest.
    limit
        The busiest of them; ``latency`` if even that is busy for less than half of the cycles, because instructions
        wait for each other's results.
    """

    name: str
    kind: str
    instructions: int
    cycles: int
    kinds: Mapping[str, int]
    multiply_adds: int
    utilization: float
    host_read_bytes: int
    host_write_bytes: int
    weight_bytes: int
    unified_buffer_rows: int
    busy: Mapping[str, int]
    bound: int
    bound_by: str
    bound_ratio: float
    limit: str


@dataclass(frozen=True)
class SegmentReport:
    """What a segment of a program consists of.

    Attributes
    ----------
    where
        ``device`` or ``host``.
    nodes
        The layers of the device, or names and operators of the nodes that the host computes.
    multiply_adds
        Of one execution.
    """

    where: str
    nodes: tuple[str, ...]
    multiply_adds: int


@dataclass(frozen=True)
class Report:
    """The cost of a program.

    Attributes
    ----------
    size, batch, memory_latency
        Size of the array; batch elements of one execution; assumed latency of the memories in cycles.
    host_rate, weight_rate
        Assumed rates of the memories in bytes per cycle; ``None`` for a beat in every cycle.
    layers
        In the order of the network.
    total
        All of them together.
    segments
        In the order in which they are computed. Those of the host take none of the cycles.
    source
        ``model`` if the cycle model predicts the cycles, or the device on which they were recorded.
    """

    size: int
    batch: int
    memory_latency: int
    host_rate: Rate
    weight_rate: Rate
    layers: tuple[LayerReport, ...]
    total: LayerReport
    segments: tuple[SegmentReport, ...]
    source: str = "model"

    def as_dict(self) -> dict[str, Any]:
        """All of it in lists, dictionaries and numbers, for JSON."""
        rates = {"host_rate": self.host_rate, "weight_rate": self.weight_rate}
        floats = {name: None if rate is None else float(rate) for name, rate in rates.items()}
        return dataclasses.asdict(self) | floats

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        table = html_table(REPORT_HEADINGS, report_rows(self), last_is_total=True)
        return f"<p>{report_title(self)}</p>{table}"


def report(program: Program, *, memory_latency: int = 4, host_rate: Rate = None, weight_rate: Rate = None) -> Report:
    """Report the cost of each layer of a program on the hardware, by the cycle model.

    Parameters
    ----------
    program
        A program compiled for any configuration.
    memory_latency
        Cycles from a request to the first beat of its data.
    host_rate, weight_rate
        Bytes per cycle, an ``int`` or a ``Fraction``, that host memory transfers at most in each direction, and weight
        memory delivers at most; by default, and at most, a beat in every cycle.

    Raises
    ------
    TypeError
        A rate is neither an ``int`` nor a ``Fraction``.
    ValueError
        The latency is less than 1, or a rate is not positive.
    """
    memories: dict[str, Any] = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    return predicted_report(program, predictions(program, **memories), **memories)


def predictions(
    program: Program, *, memory_latency: int = 4, host_rate: Rate = None, weight_rate: Rate = None
) -> list[Prediction]:
    """What the cycle model predicts for each segment of the device; parameters and errors as of :func:`report`."""
    memories = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    (parts,) = _parts(program, [memories])
    return [part.prediction for part in parts]


def predicted_report(
    program: Program,
    predicted: Sequence[Prediction],
    *,
    memory_latency: int = 4,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Report:
    """The report of :func:`report` of predictions that are there already.

    Parameters
    ----------
    program, memory_latency, host_rate, weight_rate
        Those of the predictions.
    predicted
        Results of :func:`predictions`.
    """
    memories = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    parts = [
        _Part(segment, program.layer_numbers[segment.start : segment.stop], prediction)
        for segment, prediction in zip(program.device_segments, predicted, strict=True)
    ]
    return _joined(program, parts, memories, "model")


def recorded_report(
    program: Program,
    timeline: Timeline,
    *,
    memory_latency: int = 4,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Report:
    """Report the cost of each layer in an execution of which the times of all instructions are known.

    The layers' cycles add up to those of the timeline. What instructions demand of each unit is the cycle model's.

    Parameters
    ----------
    program, memory_latency, host_rate, weight_rate
        As of :func:`report`; the memories that the device had.
    timeline
        Of one execution of the program.
    """
    memories = {"memory_latency": memory_latency, "host_rate": host_rate, "weight_rate": weight_rate}
    (predicted,) = _parts(program, [memories])
    parts = [part.retimed(timeline) for part in predicted]
    return _joined(program, parts, memories, timeline.source)


def _joined(program: Program, parts: Sequence[_Part], memories: Mapping[str, Any], source: str) -> Report:
    layers = tuple(layer for part in parts for layer in part.layers(program))
    return Report(
        size=program.config.size,
        batch=program.batch,
        **memories,
        layers=layers,
        total=_total([part.total(program) for part in parts]),
        segments=segment_reports(program),
        source=source,
    )


def total_reports(program: Program, memories: Sequence[Mapping[str, Any]]) -> list[LayerReport]:
    """The ``total`` of :func:`report` for several memories, in less time than as many reports take.

    Parameters
    ----------
    program
        With at least one segment of the device.
    memories
        Arguments of :func:`report`.
    """
    return [_total([part.total(program) for part in parts]) for parts in _parts(program, memories)]


def _parts(program: Program, memories: Sequence[Mapping[str, Any]]) -> Iterator[list[_Part]]:
    """The segments of the device with each of several memories."""
    # Imported here because the cycle model imports the hardware description, which compiling alone does not need.
    from openmxu.sim.cycle_model import Predictor

    segments = [(segment, slice(segment.start, segment.stop)) for segment in program.device_segments]
    predictors = [Predictor(program.instructions[own], program.config) for _, own in segments]
    for memory in memories:
        yield [
            _Part(segment, program.layer_numbers[own], predictor.predict(**memory))
            for (segment, own), predictor in zip(segments, predictors, strict=True)
        ]


def segment_reports(program: Program) -> tuple[SegmentReport, ...]:
    """What the segments of a program consist of."""
    reports = []
    for segment in program.segments:
        if isinstance(segment, HostSegment):
            reports.append(SegmentReport("host", segment.nodes, segment.multiply_adds * program.batch))
        else:
            layers = program.layers[slice(*segment.layers)]
            work = sum(layer.multiply_adds for layer in layers)
            reports.append(SegmentReport("device", tuple(layer.name for layer in layers), work))
    return tuple(reports)


@dataclass(frozen=True)
class _Part:
    """A segment of the device, and what the cycle model says of its instructions."""

    segment: DeviceSegment
    numbers: NDArray[np.int32]
    prediction: Prediction

    def retimed(self, timeline: Timeline) -> _Part:
        """The same with the times of a timeline of the whole program."""
        own = slice(self.segment.start, self.segment.stop)
        return dataclasses.replace(self, prediction=_retimed(self.prediction, timeline, own))

    def layers(self, program: Program) -> list[LayerReport]:
        """The reports of its layers."""
        numbers = range(*self.segment.layers)
        cycles = _cycles_by_layer(numbers, self.numbers, self.prediction)
        reports = []
        for number, count in zip(numbers, cycles, strict=True):
            layer, own = program.layers[number], self.numbers == number
            work = layer.multiply_adds
            reports.append(_layer(program.config, self.prediction, own, layer.name, layer.kind, count, work))
        return reports

    def total(self, program: Program) -> LayerReport:
        """The report of all of it."""
        everything = np.ones(len(self.numbers), np.bool_)
        work = sum(layer.multiply_adds for layer in program.layers[slice(*self.segment.layers)])
        return _layer(program.config, self.prediction, everything, "all layers", "", self.prediction.cycles, work)


def _retimed(prediction: Prediction, timeline: Timeline, own: slice) -> Prediction:
    """The prediction for the instructions ``own`` of a segment with the times of a timeline."""
    # Each segment ends with its Halt.
    origin = int(timeline.done[own.start - 1]) if own.start else 0
    begun, done = timeline.begun[own] - origin, timeline.done[own] - origin
    stalls = {name: values[own] for name, values in timeline.stalls.items()}
    left = done - (prediction.done - prediction.left)
    # The last row of a multiplication enters the array before anything of the next one happens there.
    multiplications = np.flatnonzero(prediction.unit == Unit.MATRIX)
    waits = (stalls["weight_stall"] + stalls["weight_shift"])[multiplications]
    following = np.append((begun[multiplications] - waits)[1:], done[-1])
    earliest = begun[multiplications] + prediction.demand.array[multiplications]
    left[multiplications] = np.minimum(np.maximum(left[multiplications], earliest), following)
    return dataclasses.replace(
        prediction,
        programs=(int(done[-1]),),
        accepted=timeline.accepted[own] - origin,
        begun=begun,
        done=done,
        left=left,
        stalls=dataclasses.replace(prediction.stalls, **stalls),
    )


def _total(parts: Sequence[LayerReport]) -> LayerReport:
    """Segments that run one after the other, as one."""
    sums = ("instructions", "cycles", "multiply_adds", "host_read_bytes", "host_write_bytes", "weight_bytes")
    changes = {name: sum(getattr(part, name) for part in parts) for name in sums}
    busy = {unit: sum(part.busy[unit] for part in parts) for unit in parts[0].busy}
    cycles = changes["cycles"]
    weights = sum(part.utilization * part.cycles for part in parts)
    return dataclasses.replace(
        parts[0],
        **changes,
        busy=busy,
        kinds={kind: sum(part.kinds[kind] for part in parts) for kind in parts[0].kinds},
        utilization=weights / cycles if cycles else 0.0,
        bound=sum(part.bound for part in parts),
        bound_by=_bound_by(busy),
        bound_ratio=sum(part.bound for part in parts) / cycles if cycles else 0.0,
        unified_buffer_rows=max(part.unified_buffer_rows for part in parts),
        limit=_limit(busy, cycles),
    )


def _layer(
    config: Config,
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
        "weights": max(total(demand.weights), total(demand.weight_rows)),
        "host": max(total(demand.host_read), total(demand.host_write)),
        "activation": total(demand.activation),
        _DISPATCH: total(demand.dispatch),
    }
    bound_by = _bound_by(busy)
    stalls = prediction.stalls
    kinds = {
        "array_active": busy["array"],
        "weight_stall": total(stalls.weight_stall),
        "weight_shift": total(stalls.weight_shift),
    }
    return LayerReport(
        name=name,
        kind=kind,
        instructions=int(own.sum()),
        cycles=cycles,
        kinds={
            **kinds,
            "non_matrix": cycles - sum(kinds.values()),
            "raw_stall": total(stalls.raw_stall),
            "input_stall": total(stalls.input_stall),
        },
        multiply_adds=multiply_adds,
        utilization=multiply_adds / (config.size**2 * cycles) if cycles else 0.0,
        host_read_bytes=total(demand.host_read_bytes),
        host_write_bytes=total(demand.host_write_bytes),
        weight_bytes=total(demand.weight_bytes),
        unified_buffer_rows=int(demand.unified_buffer_rows[own].max(initial=0)),
        busy=busy,
        bound=busy[bound_by],
        bound_by=bound_by,
        bound_ratio=busy[bound_by] / cycles if cycles else 0.0,
        limit=_limit(busy, cycles),
    )


def _bound_by(busy: Mapping[str, int]) -> str:
    return max((part for part in busy if part != _DISPATCH), key=busy.__getitem__)


def _limit(busy: Mapping[str, int], cycles: int) -> str:
    busiest = max(busy, key=busy.__getitem__)
    return busiest if busy[busiest] >= _BUSY_PART * cycles else _LATENCY


def _cycles_by_layer(layers: range, layer_numbers: NDArray[np.int32], prediction: Prediction) -> list[int]:
    """Distribute the cycles of a segment among its layers."""
    main = np.zeros(len(layer_numbers), np.bool_)
    for number in layers:
        own = layer_numbers == number
        for unit in (Unit.MATRIX, Unit.ACTIVATION, Unit.HOST_READ, Unit.HOST_WRITE):
            executes = own & (prediction.unit == unit)
            if executes.any():
                main |= executes
                break
    shares = np.zeros(len(layers), np.int64)
    if not main.any():
        return shares.tolist()
    ends = prediction.left.copy()
    multiplications = np.flatnonzero(prediction.unit == Unit.MATRIX)
    # Work that ends during a multiplication counts up to the beginning of that: the array's cycles belong to its layer.
    others = np.flatnonzero(main & (prediction.unit != Unit.MATRIX))
    if len(multiplications):
        waits = (prediction.stalls.weight_stall + prediction.stalls.weight_shift)[multiplications]
        begins = np.maximum(prediction.begun[multiplications] - waits, [0, *ends[multiplications[:-1]]])
        last = np.searchsorted(begins, ends[others]) - 1
        working = (last >= 0) & (ends[others] <= ends[multiplications[last]])
        ends[others[working]] = begins[last[working]]
    numbers = np.flatnonzero(main)
    numbers = numbers[np.lexsort((prediction.unit[numbers] != Unit.MATRIX, ends[numbers]))]
    spans = np.diff(ends[numbers], prepend=0)
    # Cycles after the last of them belong to its layer.
    spans[-1] += prediction.cycles - ends[numbers[-1]]
    np.add.at(shares, layer_numbers[numbers] - layers.start, spans)
    return shares.tolist()
