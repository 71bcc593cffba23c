"""A small run of ``scripts/network_campaign.py``: random models of one and of several layers."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from scripts import network_campaign
from scripts.network_campaign import Count
from scripts.random_models import FAMILIES


@pytest.mark.parametrize("part", range(4))
def test_single_layers(part: int) -> None:
    """Every family once, with other versions of operators than in other tests."""
    for number in range(part, len(FAMILIES), 4):
        assert network_campaign.main(["--layer", str(number), "--seed", "17"]) == 0


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 9])
def test_networks(number: int) -> None:
    """Regression: in number 9, reads that include neighbouring rows came too late for a tensor in their place."""
    assert network_campaign.main(["--network", str(number)]) == 0


@pytest.mark.parametrize("option", ["--layer", "--network"])
def test_rtl(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert network_campaign.main([option, "7", "--rtl"]) == 0
    assert (
        sum(" on the RTL   " in line and line.split()[-4] == "1" for line in capsys.readouterr().out.splitlines()) == 1
    )


def test_counts() -> None:
    count = Count("any", tolerance=1)
    values = np.arange(8, dtype=np.uint8)
    assert count.add(values, values) is None
    assert count.add(values, np.abs(values.astype(int) - 1).astype(np.uint8)) is None
    assert count.add(values, values + np.uint8(2)) == "8 of 8 outputs differ, by up to 2"
    assert (count.models, count.outputs, count.differing, count.largest) == (3, 24, 16, 2)
    assert count.add(values, values.astype(np.int8)) == "the output is uint8 (8,), not int8 (8,)"


def test_refused_models_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*arguments: object, **options: object) -> openmxu.Program:
        raise openmxu.CompileError("not this one")

    monkeypatch.setattr(openmxu, "compile", refuse)
    assert network_campaign.main(["--layers", "2", "--networks", "1", "--rtl-models", "1"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("CompileError: not this one") == 3
    assert "again: python scripts/network_campaign.py --network 0 --rtl --seed 0" in printed
    assert printed.endswith("3 failures\n")
