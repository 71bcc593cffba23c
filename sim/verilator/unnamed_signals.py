"""Leave what has no name in the source out of waveforms."""

from __future__ import annotations

import re

__all__ = ["hide_unnamed_signals"]

_UNNAMED = re.compile(r"\\\$([0-9]+) ")


def hide_unnamed_signals(verilog: str) -> str:
    """``verilog`` with names of Amaranth's intermediate results, as ``\\$12``, that Verilator does not trace.

    They say nothing to a reader. Verilator leaves out signals whose names begin with an underscore.
    """
    return _UNNAMED.sub(r"_unnamed_\1 ", verilog)
