"""Verilog in which a bit that is repeated is written once, for simulators that compile a design to a program."""

from __future__ import annotations

import itertools
import re

__all__ = ["with_replications"]

_CONCATENATION = re.compile(r"\{ ([^{}]+) \}")

_FEW = 3
"""So many equal neighbours stay as they are."""


def with_replications(verilog: str) -> str:
    """The same Verilog with ``{15{sum[20]}}`` for fifteen times ``sum[20]`` in a row.

    Yosys writes the sign of an extended number once for every bit. Verilator moves each of them to its place.
    """
    return _CONCATENATION.sub(_replicated, verilog)


def _replicated(concatenation: re.Match[str]) -> str:
    runs = [(part, len(list(run))) for part, run in itertools.groupby(concatenation[1].split(", "), str.strip)]
    if all(length <= _FEW for _, length in runs):
        return concatenation[0]
    # A space ends an escaped name.
    parts = (f"{{{length}{{{part} }}}}" if length > _FEW else ", ".join([f"{part} "] * length) for part, length in runs)
    return f"{{ {', '.join(parts)} }}"
