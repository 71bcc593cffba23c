"""Looking inside a run: when each instruction was in its unit, what it waited for, and pictures of it."""

from openmxu.profiling.recording import recorded_timeline
from openmxu.profiling.timeline import Timeline, predicted_timeline

__all__ = ["Timeline", "predicted_timeline", "recorded_timeline"]
