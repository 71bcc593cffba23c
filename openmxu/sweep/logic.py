"""Measured logic of configurations: the table of docs/fpga.md, in a clone."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import openmxu
from openmxu.arch import Config

__all__ = ["measured_logic"]

_RESULTS = Path(openmxu.__file__).resolve().parents[1] / "docs" / "fpga.json"
_PART = "LFE5U-85F"


def measured_logic(config: Config) -> int | None:
    """Logic cells of the AXI shell with this core, placed alone on an LFE5U-85F; ``None`` if it was not measured."""
    return _measured().get(config.fingerprint)


@functools.cache
def _measured() -> dict[str, int]:
    if not _RESULTS.exists():
        return {}
    rows = json.loads(_RESULTS.read_text()).values()
    return {
        Config(**row["config"]).fingerprint: row["lut"]
        for row in rows
        if (row["part"], row["target"]) == (_PART, "out of context")
    }
