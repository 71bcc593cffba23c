"""Looking inside a run: when each instruction was in its unit, what it waited for, and pictures of it."""

from openmxu.profiling.occupancy import Occupancy, occupancy
from openmxu.profiling.profile import Profile, take_profile
from openmxu.profiling.recording import recorded_timeline
from openmxu.profiling.timeline import Timeline, predicted_timeline

__all__ = [
    "Occupancy",
    "Profile",
    "Timeline",
    "occupancy",
    "predicted_timeline",
    "recorded_timeline",
    "take_profile",
]
