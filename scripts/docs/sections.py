"""Parts of documents that commands write."""

from __future__ import annotations

__all__ = ["with_section"]


def with_section(document: str, name: str, text: str) -> str:
    """The document with this text between the marks of that name.

    Raises
    ------
    ValueError
        The document has no such marks.
    """
    first, last = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, begin, rest = document.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"there must be lines {first.strip()} and {last.strip()}")
    return before + first + text + last + after
