"""``openmxu verilog``."""

from __future__ import annotations


def test_writes_the_core(openmxu, tmp_path):
    result = openmxu("verilog", "--size", 2, "-o", "core.v")
    assert (result.status, result.stdout, result.stderr) == (0, "", "")
    text = (tmp_path / "core.v").read_text()
    assert "\nmodule openmxu_core(" in text
    assert text.rstrip().endswith("endmodule")


def test_output_is_checked_first(openmxu, tmp_path):
    openmxu("verilog", "-o", "missing/core.v").failed(2, "cannot write missing/core.v: there is no directory")
    openmxu("verilog", "--preset", "none", "-o", "core.v").failed(2, "unknown preset 'none'")
    assert list(tmp_path.iterdir()) == []
