"""How the tests' programs in C are run."""

from __future__ import annotations

import os

ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
"""The driver allocates nothing, and looking for leaks takes longer than everything else."""
