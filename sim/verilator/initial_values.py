"""Shorter Verilog for memories that start with the same value everywhere."""

from __future__ import annotations

import itertools
import re

__all__ = ["fold_initial_values"]

_WORD = re.compile(r"^ *(?P<memory>\S+)\[(?P<index>\d+)\] = (?P<value>\d+'h[0-9a-f]+);$")


def fold_initial_values(verilog: str) -> str:
    """Replace runs of statements that give consecutive words of a memory one value by loops.

    Yosys writes one statement for each word. As C++, those of a large memory take longer to compile than all logic.
    """
    lines: list[str] = []
    for _, group in itertools.groupby(enumerate(verilog.splitlines()), _run):
        run = [line for _, line in group]
        word = _WORD.match(run[0])
        if word is None or len(run) == 1:
            lines += run
        else:
            memory, first, value = word["memory"], int(word["index"]), word["value"]
            lines.append(f"    for (int i = {first}; i < {first + len(run)}; i = i + 1) {memory}[i] = {value};")
    return "\n".join(lines) + "\n"


def _run(numbered_line: tuple[int, str]) -> tuple[str, str, int] | None:
    """The same text for neighbouring lines that form one loop; ``None`` for every other line."""
    number, line = numbered_line
    word = _WORD.match(line)
    return None if word is None else (word["memory"], word["value"], number - int(word["index"]))
