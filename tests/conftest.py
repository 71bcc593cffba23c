"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# Deadlines measure the machine, not the code: a first call may compile or import for seconds.
settings.register_profile("openmxu", deadline=None, print_blob=True)
settings.load_profile("openmxu")
