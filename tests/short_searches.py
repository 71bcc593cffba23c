"""Short searches of the compiler: it tries a few programs for each network rather than all that an effort of 1 allows.
What is tried, and how it is chosen, is the same."""

from __future__ import annotations

from openmxu.compiler.plan import search

__all__ = ["begin", "end"]

_WHOLE = (search._RAMPS, search._LIMITS, search._STEPS)


def begin() -> None:
    """Search briefly in this process from now on."""
    search._RAMPS, search._LIMITS, search._STEPS = 500, 250, 500


def end() -> None:
    """Search as for users."""
    search._RAMPS, search._LIMITS, search._STEPS = _WHOLE
