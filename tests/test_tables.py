"""Programs and reports show themselves: a line in a shell, a table in a notebook."""

from __future__ import annotations

import openmxu
from openmxu.compiler import gemm
from openmxu.html_table import html_table

PROGRAM = gemm(64, 32, 16, openmxu.Config())


def test_a_program_is_one_short_line():
    text = repr(PROGRAM)
    assert text == f"<Program for size 8, batch {PROGRAM.batch}: 1 layers, {len(PROGRAM.instructions):,} instructions>"


def test_a_program_is_a_table():
    table = PROGRAM._repr_html_()
    (spec,) = PROGRAM.inputs
    for cell in ("8 × 8, profile standard", f"input {spec.name}", f"{PROGRAM.multiply_adds:,}"):
        assert f">{cell}</td>" in table, cell


def test_a_report_is_a_table():
    report = openmxu.report(PROGRAM, memory_latency=9)
    table = report._repr_html_()
    assert "memory latency of 9 cycles" in table
    assert table.count("<tr>") == 3  # the headings, a layer, all layers
    for number in (report.total.cycles, report.total.weight_bytes):
        assert f">{number:,}</th>" in table, number


def test_texts_are_escaped():
    table = html_table(("<a>",), [("<b> & c", 1_234, 0.5)])
    assert "<th>&lt;a&gt;</th>" in table
    for cell in ("&lt;b&gt; &amp; c", "1,234", "0.500"):
        assert f">{cell}</td>" in table, cell
