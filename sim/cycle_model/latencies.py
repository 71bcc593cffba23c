"""Latencies in cycles, derived from the hardware's components."""

from __future__ import annotations

from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.rtl.activation import activation_datapath
from openmxu.rtl.activation.activation_unit import ActivationUnit
from openmxu.rtl.activation.result_writer import ResultWriter
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.matrix.accumulators import Accumulators
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup

__all__ = ["DISPATCH", "PLANE", "Latencies"]

DISPATCH = 5
"""Cycles from taking an instruction to its hand-over, if nothing delays it; the next one is taken a cycle later."""

PLANE = 6
"""Additional cycles of dispatch for an instruction with a plane."""


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
    """

    memory: int
    read: int
    tag: int
    sums: int
    sums_lead: int
    result: int
    result_lead: int
    element: int

    @classmethod
    def of(cls, config: Config, memory: int) -> Latencies:
        array = SystolicDataSetup.latency + SystolicArray.latency(config)
        return cls(
            memory=memory,
            read=memory + 2,
            tag=UnifiedBuffer.read_latency + array - 1,
            sums=Accumulators.done_latency(config) - 1,
            sums_lead=config.size + 3 - Accumulators.done_latency(config),
            result=activation_datapath.latency(config) + ResultWriter.latency,
            result_lead=ActivationUnit.done_lead,
            element=UnifiedBuffer.read_latency + 3,
        )
