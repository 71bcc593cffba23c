"""Lockstep tests: random legal programs on two devices, complete comparison of results, shrinking of failures."""

from tb.lockstep.campaign import Failure, cases, configurations, first_failure
from tb.lockstep.case import Case
from tb.lockstep.comparison import Mismatch, run_case
from tb.lockstep.outcome import outcome
from tb.lockstep.programs.generator import generate
from tb.lockstep.shrinker import shrink

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
