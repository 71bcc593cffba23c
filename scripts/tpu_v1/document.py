"""docs/tpu_v1.md, whose tables the commands of this folder write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from openmxu.program_file import write_atomically
from scripts.docs.sections import with_section

__all__ = ["DOCUMENT", "markdown", "write_section"]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "tpu_v1.md"


def markdown(lines: Iterable[Sequence[str]]) -> str:
    """A table of these cells."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def write_section(name: str, text: str) -> None:
    """Put a text between the marks of that name."""
    write_atomically(DOCUMENT, with_section(DOCUMENT.read_text(), name, text).encode())
