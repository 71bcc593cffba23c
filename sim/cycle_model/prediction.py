"""The model's prediction for a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.arch.isa import Instruction
from openmxu.sim.cycle_model.demand import Demand
from openmxu.sim.cycle_model.latencies import Memories
from openmxu.sim.cycle_model.machine import Machine
from openmxu.sim.cycle_model.matrix import Matrix, Stall
from openmxu.sim.cycle_model.unit import Dependences
from openmxu.sim.cycle_model.words import Words
from openmxu.sim.cycle_model.work import Work
from openmxu.sim.memory_rate import Rate

__all__ = ["DEFAULT_LATENCY", "Prediction", "Predictor", "Stalls", "UnpredictedError", "check_predicted", "predict"]

DEFAULT_LATENCY = 4
"""Cycles from a request to the first beat of its data, as Verilated devices have it by default."""


class UnpredictedError(OpenmxuError, ValueError):
    """The cycles of a configuration are not those that the cycle model predicts."""


def check_predicted(config: Config) -> None:
    """Check that predicted cycles are those of a core, before they are shown to a user.

    To compare programs for any other core is the compiler's use of the model.

    Raises
    ------
    UnpredictedError
        Cores of the profile execute one instruction after the other, which the model does not know.
    """
    if config.features.is_sequential:
        raise UnpredictedError(
            f"the cycle model does not know cores of the profile {config.profile}, "
            "which execute one instruction after the other"
        )


@dataclass(frozen=True)
class Stalls:
    """Arrays with an element for each instruction, 0 for those of other units: cycles in which the matrix unit has no
    row because of it.

    Attributes
    ----------
    weight_stall, weight_shift
        It waits for its tile to arrive in the FIFO, and to be shifted into the array.
    raw_stall, input_stall
        It waits for results of the activation unit or for room that those leave, and for rows of the host reader. A
        cycle may belong to both.
    """

    weight_stall: NDArray[np.int64]
    weight_shift: NDArray[np.int64]
    raw_stall: NDArray[np.int64]
    input_stall: NDArray[np.int64]

    @classmethod
    def of(cls, matrix: Matrix, instructions: int) -> Stalls:
        """Those of a program of so many instructions."""
        found = np.zeros((len(Stall._fields), instructions), np.int64)
        found[:, matrix.numbers] = np.array(matrix.stalls, np.int64).reshape(-1, len(found)).T
        return cls(*found)


@dataclass(frozen=True)
class Prediction:
    """Cycles of a program.

    Attributes
    ----------
    programs
        For each program the cycles from its first instruction to the end of its Halt.
    stalls
        For each instruction the cycles in which the matrix unit waited for it.
    accepted
        For each instruction the cycle in which it is handed to its unit, or executed by the dispatcher; the first
        instruction is taken in cycle 0.
    begun, done
        For each instruction the cycles in which it begins to execute, and in which it is finished.
    left
        For each multiplication the cycle behind its last row's; for other instructions as ``done``.
    demand
        The demand of each instruction on the parts of the core.
    unit
        For each instruction the number of the :class:`~openmxu.arch.isa.Unit` that executes it; -1 for the dispatcher.
    """

    programs: tuple[int, ...]
    stalls: Stalls
    accepted: NDArray[np.int64]
    begun: NDArray[np.int64]
    done: NDArray[np.int64]
    left: NDArray[np.int64]
    demand: Demand
    unit: NDArray[np.int64]

    @property
    def cycles(self) -> int:
        """The value of the counter ``CYCLES``."""
        return sum(self.programs)

    @property
    def array_active(self) -> int:
        """The counter ``ARRAY_ACTIVE``."""
        return int(self.demand.array.sum())

    @property
    def weight_stall(self) -> int:
        """The counter ``WEIGHT_STALL``."""
        return int(self.stalls.weight_stall.sum())

    @property
    def weight_shift(self) -> int:
        """The counter ``WEIGHT_SHIFT``."""
        return int(self.stalls.weight_shift.sum())

    @property
    def non_matrix(self) -> int:
        """The counter ``NON_MATRIX``: all other cycles."""
        return self.cycles - self.array_active - self.weight_stall - self.weight_shift

    @property
    def raw_stall(self) -> int:
        """The counter ``RAW_STALL``, a part of ``NON_MATRIX``."""
        return int(self.stalls.raw_stall.sum())

    @property
    def input_stall(self) -> int:
        """The counter ``INPUT_STALL``, a part of ``NON_MATRIX``."""
        return int(self.stalls.input_stall.sum())


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
        begun, done = (np.array(cycles, np.int64) for cycles in machine.times())
        left = done.copy()
        left[machine.matrix.numbers] -= machine.matrix.latency - 1
        return Prediction(
            programs=tuple(machine.programs),
            stalls=Stalls.of(machine.matrix, len(work.words)),
            accepted=np.array(machine.accepted, np.int64),
            begun=begun,
            done=done,
            left=left,
            demand=Demand.of(work, memories),
            unit=work.unit,
        )
