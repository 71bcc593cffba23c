"""Tables of commands on terminals of any width."""

from __future__ import annotations

import dataclasses
import io
import re
import sys

import pytest

import openmxu
from openmxu.cli.report import print_report
from openmxu.compiler import gemm


class Terminal(io.StringIO):
    """Text that is shown on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 250])
@pytest.mark.parametrize("name", ["x", "a long name of a layer with more than fifty characters"])
def test_no_number_of_a_report_is_cut(monkeypatch, columns, name):
    """Names are folded and columns are stacked instead."""
    report = openmxu.report(gemm(4, 4, 4, openmxu.Config(size=4)))
    large = {"cycles": 68_312_345, "multiply_adds": 9_123_456_789, "host_read_bytes": 1_234_567_890, "bound": 7_654_321}
    layer = dataclasses.replace(report.layers[0], name=name, **large)
    report = dataclasses.replace(report, layers=(layer,))
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    print_report(report)
    title, *table = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()).splitlines()
    assert "Predicted: " in title
    assert "…" not in terminal.getvalue()
    assert max(map(len, table)) <= columns
    words = " ".join(table).split()
    for number in large.values():
        assert words.count(f"{number:,}") == 1
    headers = (line.count("layer  ") for line in table)
    assert (sum(headers) > 1) == (columns < 200)
