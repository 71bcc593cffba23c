"""The model's prediction for a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction
from openmxu.sim.cycle_model.demand import Demand
from openmxu.sim.cycle_model.latencies import Memories
from openmxu.sim.cycle_model.machine import Machine
from openmxu.sim.cycle_model.unit import Dependences
from openmxu.sim.cycle_model.words import Words
from openmxu.sim.cycle_model.work import Work
from openmxu.sim.memory_rate import Rate

__all__ = ["DEFAULT_LATENCY", "Prediction", "Predictor", "predict"]

DEFAULT_LATENCY = 4
"""Cycles from a request to the first beat of its data, as Verilated devices have it by default."""


@dataclass(frozen=True)
class Prediction:
    """Cycles of a program.

    Attributes
    ----------
    programs
        For each program the cycles from its first instruction to the end of its Halt.
    weight_stall, weight_shift
        The counters of these names: cycles in which a multiplication waited for a tile to arrive, and to be shifted in.
    accepted
        For each instruction the cycle in which it is handed to its unit, or executed by the dispatcher; the first
        instruction is taken in cycle 0.
    begun, done
        For each instruction the cycles in which it begins to execute, and in which it is finished.
    demand
        The demand of each instruction on the parts of the core.
    unit
        For each instruction the number of the :class:`~openmxu.arch.isa.Unit` that executes it; -1 for the dispatcher.
    """

    programs: tuple[int, ...]
    weight_stall: int
    weight_shift: int
    accepted: NDArray[np.int64]
    begun: NDArray[np.int64]
    done: NDArray[np.int64]
    demand: Demand
    unit: NDArray[np.int64]

    @property
    def cycles(self) -> int:
        """The value of the counter ``CYCLES``."""
        return sum(self.programs)


def predict(
    program: Iterable[Instruction],
    config: Config,
    *,
    memory_latency: int = DEFAULT_LATENCY,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Prediction:
    """Predict the cycles of a program on the hardware.

    The model assumes that memories answer after a fixed time and then in every cycle or at a fixed rate, and that the
    host has the next instruction ready, takes events and acknowledges at once: like a
    :class:`~openmxu.sim.verilated.VerilatedDevice` without stalls.

    Parameters
    ----------
    program
        One or more programs, each ended by Halt, that raise no fault. Configuration registers are 0 at the beginning.
    config
        The configuration of the core.
    memory_latency
        Cycles from a request to the first beat of its data, and from a write's last beat to its response.
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
    return Predictor(program, config).predict(memory_latency, host_rate=host_rate, weight_rate=weight_rate)


class Predictor:
    """Predicts the cycles of one program with several memories; parameters and errors as those of :func:`predict`."""

    def __init__(self, program: Iterable[Instruction], config: Config) -> None:
        self._work = Work(Words(program), config)
        self._dependences = Dependences.of(self._work)

    def predict(
        self, memory_latency: int = DEFAULT_LATENCY, *, host_rate: Rate = None, weight_rate: Rate = None
    ) -> Prediction:
        """The prediction with a latency and two rates."""
        work = self._work
        memories = Memories.of(work.config, memory_latency, host_rate, weight_rate)
        machine = Machine(work, self._dependences, memories)
        machine.run()
        begun, done = machine.times()
        return Prediction(
            programs=tuple(machine.programs),
            weight_stall=machine.matrix.stall,
            weight_shift=machine.matrix.shift,
            accepted=np.array(machine.accepted, np.int64),
            begun=np.array(begun, np.int64),
            done=np.array(done, np.int64),
            demand=Demand.of(work, memories),
            unit=work.unit,
        )
