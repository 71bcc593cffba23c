"""A slice of ``scripts/exactness.py``: random operators, 0 outputs that differ from ONNX Runtime."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import openmxu
from scripts import exactness


@pytest.mark.parametrize(
    ("name", "size", "count"),
    [*(("interpreter", size, 12) for size in (2, 4, 8, 16, 32)), ("verilator", 8, 8)],
)
def test_no_output_differs(name: str, size: int, count: int) -> None:
    config = openmxu.Config.for_size(size)
    stream = exactness.cases(np.random.default_rng((17, size)), largest=80)
    with openmxu.open_device(name, config) as device:
        for case in itertools.islice(stream, count):
            result = exactness.compare(case, device)
            assert (case.text, result.differing, result.undefined) == (case.text, 0, 0)
            assert result.outputs > 0


@pytest.mark.parametrize("operator", exactness.OPERATORS)
def test_a_wrong_device_is_noticed(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = exactness.random_case(np.random.default_rng(1), operator, (20, 30, 10))
    config = openmxu.Config()
    with openmxu.open_device("interpreter", config) as device:
        execute = device.execute

        def disturbed(program, host_memory, weight_memory):
            weights = weight_memory.copy()
            weights[: config.size] ^= 0x55
            return execute(program, host_memory, weights)

        monkeypatch.setattr(device, "execute", disturbed)
        assert exactness.compare(case, device).differing > 0


def test_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["exactness.py", "--size", "4", "--outputs", "500", "--largest", "20"])
    with pytest.raises(SystemExit) as caught:
        exactness.main()
    assert caught.value.code == 0
    assert "interpreter, S = 4:" in capsys.readouterr().out
