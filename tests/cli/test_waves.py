"""Waveforms of ``openmxu run``."""

from __future__ import annotations

from pathlib import Path

import pytest

import openmxu as openmxu_package
from openmxu.cli.waveforms import shown_cycles, waveform_row
from openmxu.models import DIGITS_MODEL

PROGRAM = """
read_host_memory host=0, unified_buffer=0, rows=2
write_host_memory host=8, unified_buffer=0, rows=2
halt
"""


def declared(waveform: Path) -> set[str]:
    """Paths of the signals in a .vcd file."""
    names, scopes = set(), []
    for line in waveform.read_text().splitlines():
        match line.split():
            case ["$scope", _, name, "$end"]:
                scopes.append(name)
            case ["$upscope", "$end"]:
                scopes.pop()
            case ["$var", _, _, _, name, *_]:
                names.add(".".join((*scopes, name.partition("[")[0])))
            case ["$enddefinitions", "$end"]:
                break
    return names


def test_row_names_the_cycles_and_the_instruction():
    program = openmxu_package.compile(DIGITS_MODEL, openmxu_package.Config.for_size(8), effort=0)
    waves, last = Path("w.vcd"), len(program.instructions) - 1
    first, end = shown_cycles(program, waves, None, last)
    name, text = waveform_row(waves, (first, end), program, last)
    assert (name, text) == ("waveform", f"w.vcd: cycles {first:,} to {end:,}, instruction {last} (halt)")
    assert waveform_row(waves, None) == ("waveform", "w.vcd")


@pytest.mark.slow
def test_listed_signals_of_bare_instructions_are_in_the_waveform(openmxu, tmp_path):
    (tmp_path / "copy.s").write_text(PROGRAM)
    (tmp_path / "host.bin").write_bytes(bytes(16))
    run = ("run", "copy.s", "--size", 4, "--host-memory", "host.bin", "--device", "verilator")
    openmxu(*run, "--waves", "w.vcd", "--waves-instruction", 1).failed(2, "bare instructions take --waves-cycles")
    result = openmxu(*run, "--waves", "w.vcd", "--waves-cycles", "0:60")
    assert result.status == 0
    assert "w.vcd: cycles 0 to 60" in result.stdout
    listed = [line for line in (tmp_path / "w.vcd.gtkw").read_text().splitlines() if line.startswith("TOP.")]
    assert listed
    assert {line.partition("[")[0] for line in listed} <= declared(tmp_path / "w.vcd")
    assert "write_host_memory" in (tmp_path / "w.vcd.instructions").read_text()
