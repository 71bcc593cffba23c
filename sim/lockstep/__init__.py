"""Random legal programs in lockstep: the same program on two devices, everything compared, failures made short."""

from openmxu.sim.lockstep.campaign import Failure, cases, configurations, first_failure
from openmxu.sim.lockstep.case import Case
from openmxu.sim.lockstep.comparison import Mismatch, run_case
from openmxu.sim.lockstep.generator import generate
from openmxu.sim.lockstep.outcome import outcome
from openmxu.sim.lockstep.shrinker import shrink

__all__ = [
    "Case",
    "Failure",
    "Mismatch",
    "cases",
    "configurations",
    "first_failure",
    "generate",
    "outcome",
    "run_case",
    "shrink",
]
