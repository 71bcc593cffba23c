"""The workloads on the preset ``tpu_v1``: the cycle model's prediction as rows of the paper's Table 3."""

from __future__ import annotations

from dataclasses import dataclass

import openmxu
from examples.tpu_v1.graph import Workload
from openmxu.program import Program
from openmxu.reporting import Report
from openmxu.sim.cycle_model import Prediction, predict
from scripts.tpu_v1.paper import CLOCK, HOST_RATE, WEIGHT_RATE

__all__ = ["SERVED", "Measured", "limiting_cycles", "measure", "occupied_elements", "program_of"]

SERVED = {"CNN0": 8}
"""Batches that one program computes one after the other; 1 of all others. The input of CNN0 takes a tenth of its time,
and the results as long: in service, those of one batch come and go while the array works on another."""


@dataclass(frozen=True)
class Measured:
    """A workload's program on the machine.

    Attributes
    ----------
    instructions, cycles
        Of the program.
    active, stall, shift, raw, starved
        Cycles in which the array takes a row of inputs; in which it waits for weights to arrive, and to be shifted in;
        in which it waits for the activation unit; and for the host's inputs.
    multiply_adds
        Useful ones.
    occupied
        Cycles of single elements that these take: two each with 16-bit inputs, which pass the array twice.
    limit
        Cycles of the roofline: see :func:`limiting_cycles`.
    """

    name: str
    instructions: int
    cycles: int
    active: int
    stall: int
    shift: int
    raw: int
    starved: int
    multiply_adds: int
    occupied: int
    limit: int

    @property
    def share(self) -> float:
        """Roofline ÷ cycles, or array active ÷ what the roofline allows: 1 on the roofline."""
        return self.limit / self.cycles

    @property
    def rows(self) -> tuple[float, ...]:
        """The rows of the paper's Table 3."""
        useful = self.occupied / openmxu.Config.preset("tpu_v1").tile_bytes
        other = self.cycles - self.active - self.stall - self.shift
        parts = (self.active, useful, self.active - useful, self.stall, self.shift, other, self.raw, self.starved)
        seconds = self.cycles / CLOCK
        return (*(100 * part / self.cycles for part in parts), 2 * self.multiply_adds / seconds / 1e12)


def limiting_cycles(report: Report) -> int:
    """Cycles that array, weight memory and host need at least.

    Weights come no earlier than the weight FIFO has room, so that a layer takes as long as its products or as its
    weights, whichever is longer. The host's transfers of a layer lie beside any other layer.
    """
    layers = sum(max(layer.busy["array"], layer.busy["weights"]) for layer in report.layers)
    return max(layers, report.total.busy["host"])


def program_of(workload: Workload, batch: int) -> Program:
    """A workload's program for the preset with the paper's memories."""
    config = openmxu.Config.preset("tpu_v1")
    rates = {"host_rate": HOST_RATE, "weight_rate": WEIGHT_RATE}
    return openmxu.compile(workload.model, config, batch=batch, strict=True, effort=0, **rates)


def measure(name: str, workload: Workload) -> Measured:
    """Compile a workload and predict its cycles, with the paper's rates of both memories."""
    program = program_of(workload, workload.batch * SERVED.get(name, 1))
    prediction = predict(program.instructions, program.config, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE)
    report = openmxu.report(program, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE)
    return _measured(name, program, prediction, report)


def occupied_elements(program: Program) -> int:
    """Cycles of single elements that the useful multiply-adds of a program take."""
    wide = {
        int(layer)
        for layer, instruction in zip(program.layer_numbers, program.instructions, strict=True)
        if instruction.values.get("wide_input")
    }
    return sum(layer.multiply_adds * (1 + (number in wide)) for number, layer in enumerate(program.layers))


def _measured(name: str, program: Program, prediction: Prediction, report: Report) -> Measured:
    return Measured(
        name=name,
        instructions=len(program.instructions),
        cycles=prediction.cycles,
        active=prediction.array_active,
        stall=prediction.weight_stall,
        shift=prediction.weight_shift,
        raw=prediction.raw_stall,
        starved=prediction.input_stall,
        multiply_adds=report.total.multiply_adds,
        occupied=occupied_elements(program),
        limit=limiting_cycles(report),
    )
