"""Tables as HTML, for notebooks and pages; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["html_table"]


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str | int | float]], *, last_is_total: bool = False
) -> str:
    """A table with a heading for each column.

    Parameters
    ----------
    headings
        One for each column; none leaves the row of headings out.
    rows
        Text, which is aligned left, integers, which get separators of thousands, and floats, shown with three decimals.
    last_is_total
        Whether the last row sums up the ones before it; it is emphasized.
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    parts = ["<table>", f"<thead><tr>{head}</tr></thead>" if headings else "", "<tbody>"]
    for number, row in enumerate(rows, 1):
        is_total = last_is_total and number == len(rows)
        cells = "".join(_cell(value, "th" if is_total else "td") for value in row)
        parts.append(f"<tr>{cells}</tr>")
    return "".join((*parts, "</tbody></table>"))


def _cell(value: str | int | float, tag: str) -> str:
    if isinstance(value, str):
        return f'<{tag} style="text-align: left">{escape(value)}</{tag}>'
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
    return f'<{tag} style="text-align: right">{text}</{tag}>'
