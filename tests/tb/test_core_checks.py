"""The checks of the core that other scripts run are the same in every process, and each has a limit."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from scripts.mutation import bench
from tb import core_checks
from tb.directed.directed_cases import DIRECTED


@pytest.mark.parametrize("config", DIRECTED, ids=lambda config: f"S{config.size}")
def test_a_copy_of_a_configuration_has_the_same_checks(monkeypatch, config):
    # What the interpreter leaves after each case takes minutes to compute, and is not compared.
    monkeypatch.setattr(core_checks, "_record", lambda case: [])
    monkeypatch.setattr(core_checks, "directed", lambda config, seed: [])
    names, others = (
        [check.name for check in core_checks.checks(each)] for each in (config, pickle.loads(pickle.dumps(config)))
    )
    assert names == others
    assert ("most tiles" in names) == (config.size < DIRECTED[-1].size)


def test_checks_without_a_limit_are_no_verdict(monkeypatch):
    monkeypatch.setattr(bench, "_checks", lambda config: ["one", "another"])
    with pytest.raises(RuntimeError, match="2 checks have 1 limits"):
        bench._prepare(SimpleNamespace(planted=SimpleNamespace(config=DIRECTED[0]), limits=[10]), 1)
