"""The modelled device: results by the interpreter, cycles by the cycle model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Counter, Event
from openmxu.arch.isa import Instruction
from openmxu.device import in_one_thread
from openmxu.sim.cycle_model import Prediction, Predictor, check_predicted
from openmxu.sim.cycle_model.latencies import Memories
from openmxu.sim.cycle_model.prediction import DEFAULT_LATENCY
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.memory_rate import Rate

__all__ = ["ModelledDevice"]

_CYCLES = (
    *(Counter.CYCLES, Counter.ARRAY_ACTIVE, Counter.WEIGHT_STALL, Counter.WEIGHT_SHIFT, Counter.NON_MATRIX),
    *(Counter.RAW_STALL, Counter.INPUT_STALL),
)
_BYTES = (Counter.HOST_READ_BYTES, Counter.HOST_WRITE_BYTES, Counter.WEIGHT_BYTES)

_KEPT_PREDICTIONS = 64
"""Programs whose cycles are known: they take as long each time."""


class ModelledDevice(Interpreter):
    """Computes what the interpreter computes, and counts the cycles that the cycle model predicts.

    It is as fast as the interpreter, after the first run of each program, and needs no simulation model. It predicts a
    program as if configuration registers were 0 at its beginning, which makes no difference to compiled ones, and
    counts nothing for programs that raise a fault.

    Parameters
    ----------
    config
        Sizes of the core.
    memory_latency
        Cycles, at least 1, from a request to the first beat of its data, and from a write's last beat to its response.
    host_rate, weight_rate
        Bytes per cycle, an ``int`` or a ``Fraction``, that host memory transfers at most in each direction, and weight
        memory delivers at most; by default, and at most, a beat in every cycle.

    Raises
    ------
    TypeError
        A rate is neither an ``int`` nor a ``Fraction``.
    ValueError
        The latency is less than 1, a rate is not positive, or cores of the profile execute one instruction after the
        other, which the model does not know.
    """

    def __init__(
        self,
        config: Config,
        *,
        memory_latency: int = DEFAULT_LATENCY,
        host_rate: Rate = None,
        weight_rate: Rate = None,
    ) -> None:
        super().__init__(config)
        check_predicted(config)
        Memories.of(config, memory_latency, host_rate, weight_rate)  # checks them
        self._latency = memory_latency
        self._rates = {"host_rate": host_rate, "weight_rate": weight_rate}
        self._predictions: dict[tuple[Instruction, ...], dict[Counter, int]] = {}
        self._counts: dict[Counter, int] = {}
        self.clear_counters()

    @in_one_thread
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program``; see :meth:`openmxu.sim.interpreter.Interpreter.execute`."""
        instructions = tuple(program)
        events = super().execute(instructions, host_memory, weight_memory)
        for counter, count in self._predicted(instructions).items():
            self._counts[counter] += count
        return events

    @property
    def counters(self) -> Mapping[Counter, int]:
        """The predicted cycles, by kind, and the bytes transferred, since counters were last cleared."""
        return dict(self._counts)

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._counts = {counter: 0 for counter in (*_CYCLES, *_BYTES) if counter in self.config.features.counters}

    def scrub(self) -> None:
        """Clear memories, configuration registers, queued weights and counters."""
        super().scrub()
        self.clear_counters()

    def _predicted(self, instructions: tuple[Instruction, ...]) -> dict[Counter, int]:
        """What one execution adds to each counter."""
        counts = self._predictions.get(instructions)
        if counts is None:
            prediction = Predictor(instructions, self.config).predict(self._latency, **self._rates)
            counts = self._predictions[instructions] = self._count(prediction)
            if len(self._predictions) > _KEPT_PREDICTIONS:
                del self._predictions[next(iter(self._predictions))]
        return counts

    def _count(self, prediction: Prediction) -> dict[Counter, int]:
        cycles = {counter: getattr(prediction, counter.name.lower()) for counter in _CYCLES}
        transferred = {counter: int(getattr(prediction.demand, counter.name.lower()).sum()) for counter in _BYTES}
        return {counter: count for counter, count in (cycles | transferred).items() if counter in self._counts}
