"""The profile of one execution: what each layer costs, when each instruction ran, and what the device counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from openmxu.arch.events import Counter
from openmxu.device import Device
from openmxu.disassembler import format_instruction
from openmxu.profiling.limits import limit_in_words
from openmxu.profiling.occupancy import Occupancy, occupancy
from openmxu.profiling.recording import first_batch, recorded_timeline
from openmxu.profiling.timeline import Timeline, timeline_of
from openmxu.program import Program
from openmxu.reporting import LayerReport, Report, predicted_report, predictions, recorded_report
from openmxu.sim.cycle_model import check_predicted
from openmxu.sim.memory_rate import Rate
from openmxu.sim.verilated import VerilatedDevice

__all__ = ["POINTS", "Profile", "take_profile"]

POINTS = 4000
"""Points of the unified buffer's occupancy that a profile shows."""


@dataclass(frozen=True)
class Profile:
    """One execution of a program.

    Attributes
    ----------
    model, device
        Names to show.
    program
        The program that was executed.
    elements
        Batch elements of the input that were computed; up to ``program.batch`` the others were zeros.
    report
        The cost of each layer.
    timeline
        Of the instructions.
    counters
        The device's counters by lower-case name; empty if it has no clock.
    occupancy
        Of the unified buffer.
    """

    model: str
    device: str
    program: Program
    elements: int
    report: Report
    timeline: Timeline
    counters: Mapping[str, int]
    occupancy: Occupancy

    @property
    def counted(self) -> int | None:
        """The device's counter ``CYCLES``; ``None`` if it has no clock."""
        return self.counters.get(Counter.CYCLES.name.lower())

    @property
    def cycles(self) -> int:
        """The device's counter, or what the cycle model predicts for a device without a clock."""
        return self.report.total.cycles if self.counted is None else self.counted

    @property
    def difference(self) -> int:
        """Cycles that the device counted, but that no layer has; negative if the layers have too many."""
        return self.cycles - sum(layer.cycles for layer in self.report.layers)

    @property
    def utilization(self) -> float:
        """Useful multiply-adds of the whole batch ÷ (S² × cycles)."""
        return self.program.multiply_adds / (self.program.config.size**2 * self.cycles)

    def intensity(self, layer: LayerReport) -> float | None:
        """Multiply-adds of a layer for each byte from weight memory; ``None`` if it takes none."""
        return layer.multiply_adds / layer.weight_bytes if layer.weight_bytes else None

    @property
    def weight_rate(self) -> float:
        """Bytes that weight memory delivers per cycle at most."""
        width, rate = self.program.config.weight_data_bytes, self.report.weight_rate
        return float(width if rate is None else min(width, rate))

    def summary(self) -> dict[str, Any]:
        """The numbers at the top of the page."""
        return {
            "model": self.model,
            "device": self.device,
            "source": self.timeline.source,
            "config": self.program.config.as_dict(),
            "batch": self.program.batch,
            "elements": self.elements,
            "instructions": len(self.program.instructions),
            "multiply_adds": self.program.multiply_adds,
            "cycles": self.cycles,
            "utilization": self.utilization,
            "layer_cycles": self.cycles - self.difference,
            "counted_cycles": self.counted,
            "difference": self.difference,
            "counters": dict(self.counters),
        }

    def as_dict(self) -> dict[str, Any]:
        """Everything that the page shows in lists, dictionaries and numbers, for JSON."""
        shown, timeline = self.occupancy.at_most(POINTS), self.timeline
        numbers = self.report.as_dict()
        for found, layer in zip(numbers["layers"], self.report.layers, strict=True):
            found["words"] = limit_in_words(layer)
        return self.summary() | {
            "report": numbers,
            "roofline": {
                "multiply_adds_per_cycle": self.program.config.size**2,
                "weight_bytes_per_cycle": self.weight_rate,
                "layers": [
                    {
                        "name": layer.name,
                        "multiply_adds_per_weight_byte": self.intensity(layer),
                        "multiply_adds_per_cycle": layer.multiply_adds / layer.cycles if layer.cycles else None,
                    }
                    for layer in self.report.layers
                ],
            },
            "occupancy": {
                "cycle": shown.cycle.tolist(),
                "rows": shown.rows.tolist(),
                "peak": shown.peak,
                "available": shown.available,
            },
            "timeline": {
                "cycles": timeline.cycles,
                **{name: getattr(timeline, name).tolist() for name in ("unit", "accepted", "begun", "done", "layer")},
                "stalls": {name: values.tolist() for name, values in timeline.stalls.items()},
                "text": [format_instruction(instruction) for instruction in self.program.instructions],
            },
        }


def take_profile(
    program: Program,
    device: Device,
    inputs: NDArray[Any] | Mapping[str, NDArray[Any]],
    *,
    model: str,
    device_name: str,
    memory_latency: int = 4,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Profile:
    """Run a program once and profile that execution.

    The counters are the device's. So are the times of layers and instructions of a Verilated device, whose RTL is
    recorded; for other devices they are those that the cycle model predicts.

    Parameters
    ----------
    program
        A program of which the device computes something.
    device
        An open device.
    inputs
        As of :meth:`openmxu.device.Device.run`; batch elements behind the program's batch are left out.
    model, device_name
        Names to show.
    memory_latency, host_rate, weight_rate
        As of :func:`openmxu.report`; the memories that the device has.

    Raises
    ------
    openmxu.sim.cycle_model.UnpredictedError
        The core is of the profile ``lite``, whose cycles are neither recorded nor predicted.
    ValueError
        The host computes all of the program.
    openmxu.program.InputError, openmxu.device.DeviceError
        As :meth:`openmxu.device.Device.run` does.
    """
    if not program.device_segments:
        raise ValueError("the host computes all of the program: there is nothing to profile")
    check_predicted(program.config)
    memories: dict[str, Any] = {
        "memory_latency": memory_latency,
        "host_rate": host_rate,
        "weight_rate": weight_rate,
    }
    device.load(program)
    device.clear_counters()
    if isinstance(device, VerilatedDevice):
        timeline = recorded_timeline(program, device, inputs)
        costs = recorded_report(program, timeline, **memories)
    else:
        device.run(first_batch(program, inputs))
        predicted = predictions(program, **memories)
        timeline, costs = timeline_of(program, predicted), predicted_report(program, predicted, **memories)
    counters = {counter.name.lower(): int(value) for counter, value in device.counters.items()}
    return Profile(
        model=model,
        device=device_name,
        program=program,
        elements=_elements(program, inputs),
        report=costs,
        timeline=timeline,
        counters=counters,
        occupancy=occupancy(program, timeline),
    )


def _elements(program: Program, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> int:
    """Batch elements that one execution computes of the inputs."""
    spec, array = program.inputs[0], first_batch(program, inputs)[program.inputs[0].name]
    return 1 if spec.is_whole else int(array.shape[spec.batch_axis])
