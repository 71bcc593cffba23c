"""Sweeps: cycles of many networks on many configurations by the cycle model. :mod:`openmxu.cluster` spreads them."""

from openmxu.sweep.journal import Journal
from openmxu.sweep.measuring import Model, Product
from openmxu.sweep.points import COLUMNS, Point, is_best, measured_points, points_of
from openmxu.sweep.settings import Settings, SweepError, expanded, read_settings

__all__ = [
    "COLUMNS",
    "Journal",
    "Model",
    "Point",
    "Product",
    "Settings",
    "SweepError",
    "expanded",
    "is_best",
    "measured_points",
    "points_of",
    "read_settings",
]
