"""Latencies in cycles, derived from the hardware's components."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from openmxu.arch.config import Config
from openmxu.rtl.activation import activation_datapath
from openmxu.rtl.activation.activation_unit import ActivationUnit
from openmxu.rtl.activation.result_writer import ResultWriter
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.matrix.accumulators import Accumulators
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup
from openmxu.sim.memory_rate import Rate, beat_times

__all__ = ["DISPATCH", "PLANE", "Latencies", "Memories"]

DISPATCH = 5
"""Cycles from taking an instruction to its hand-over, if nothing delays it; the next one is taken a cycle later."""

PLANE = 6
"""Additional cycles of dispatch for an instruction with a plane."""


@dataclass(frozen=True)
class Memories:
    """The memories at the core's ports.

    Attributes
    ----------
    latency
        From a request to the first beat of its data, and from a write's last beat to its response.
    host_beat, weight_beat
        From beat to beat.
    """

    latency: int
    host_beat: Fraction
    weight_beat: Fraction

    @classmethod
    def of(cls, config: Config, latency: int, host_rate: Rate, weight_rate: Rate) -> Memories:
        """Memories with a latency in cycles and rates in bytes per cycle.

        Raises
        ------
        TypeError, ValueError
            The latency is less than 1, or a rate is wrong: see :func:`~openmxu.sim.memory_rate.beat_time`.
        """
        if latency < 1:
            raise ValueError(f"memory_latency must be at least 1 cycle, not {latency}")
        return cls(latency, *beat_times(config, host_rate, weight_rate))


@dataclass(frozen=True)
class Latencies:
    """Latencies of one configuration.

    Attributes
    ----------
    memory
        From a write's last beat to its response.
    read
        From a request to its first beat: that of the memory, and one register each on the way there and back.
    tag
        From a row's turn in the matrix unit to the read of the first column of its sums.
    sums
        From that read of an instruction's last row until its end.
    sums_lead
        From the end of an instruction until its sums are written in all columns.
    result
        From the last beat of a pass of the activation unit to its result in the unified buffer.
    result_lead
        From the end of an instruction of the activation unit to its last result.
    element
        From the request for the unified buffer row of a pass to its first beat.
    host_beat, weight_beat
        From beat to beat of a memory.
    """

    memory: int
    read: int
    tag: int
    sums: int
    sums_lead: int
    result: int
    result_lead: int
    element: int
    host_beat: Fraction
    weight_beat: Fraction

    @classmethod
    def of(cls, config: Config, memories: Memories) -> Latencies:
        array = SystolicDataSetup.latency + SystolicArray.latency(config)
        return cls(
            memory=memories.latency,
            read=memories.latency + 2,
            tag=UnifiedBuffer.read_latency + array - 1,
            sums=Accumulators.done_latency(config) - 1,
            sums_lead=config.size + 3 - Accumulators.done_latency(config),
            result=activation_datapath.latency(config) + ResultWriter.latency,
            result_lead=ActivationUnit.done_lead,
            element=UnifiedBuffer.read_latency + 3,
            host_beat=memories.host_beat,
            weight_beat=memories.weight_beat,
        )
