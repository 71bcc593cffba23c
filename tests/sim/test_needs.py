"""Estimates of time and memory, and the refusal of what a machine cannot build."""

from __future__ import annotations

import resource

import pytest

from openmxu.arch.config import Config
from openmxu.sim.verilator import MachineTooSmallError, library_path, needs
from openmxu.sim.verilator.cache import CACHE_VARIABLE
from openmxu.sim.verilator.needs import (
    ANY_SIZE_VARIABLE,
    Needs,
    available_memory,
    check_machine,
    model_needs,
    verilog_needs,
)

GIB = 1 << 30
TPU = Config.preset("tpu_v1")


def test_estimates_are_near_what_was_measured():
    """S, seconds and MiB of the generation of Verilog."""
    for size, seconds, mebibytes in ((8, 4, 168), (32, 6, 295), (64, 13, 607), (128, 29, 1742), (256, 114, 5746)):
        estimate = verilog_needs(Config.for_size(size))
        assert estimate.seconds == pytest.approx(seconds, rel=0.25)
        assert estimate.memory / (1 << 20) == pytest.approx(mebibytes, rel=0.15)


def test_models_need_more_the_larger_they_are():
    sizes = [Config.for_size(1 << exponent) for exponent in range(1, 9)]
    for trace in (None, "vcd"):
        estimates = [model_needs(config, trace, cores=2) for config in sizes]
        assert estimates == sorted(estimates, key=lambda estimate: (estimate.seconds, estimate.memory))
    assert model_needs(sizes[-1], "vcd", cores=2).memory > 5 * model_needs(sizes[-1], cores=2).memory
    assert model_needs(sizes[2], cores=64).memory > 5 * model_needs(sizes[2], cores=2).memory


def test_text():
    assert str(Needs(20, 512 << 20)) == "about 20 s and 0.5 GiB of memory"
    assert str(Needs(240, 6 * GIB)) == "about 4 minutes and 6.0 GiB of memory"


def test_too_little_memory_is_an_error_before_the_build(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(ANY_SIZE_VARIABLE, raising=False)
    monkeypatch.setattr(needs, "available_memory", lambda: GIB)
    message = r"the simulation model of S = 256 takes about .* and 1\.0 GiB are available; .* OPENMXU_ANY_SIZE=1"
    with pytest.raises(MachineTooSmallError, match=message) as caught:
        library_path(TPU)
    assert caught.value.size == 256
    assert not (tmp_path / "cache").exists()


def test_going_on_anyway(monkeypatch, caplog):
    monkeypatch.setattr(needs, "available_memory", lambda: GIB)
    monkeypatch.setenv(ANY_SIZE_VARIABLE, "1")
    check_machine("Verilog", TPU, Needs(600, 2 * GIB))
    assert caplog.messages == ["Verilog of S = 256 takes about 10 minutes and 2.0 GiB of memory"]


def test_short_builds_say_nothing(monkeypatch, caplog):
    for available in (GIB, None):
        monkeypatch.setattr(needs, "available_memory", lambda available=available: available)
        check_machine("Verilog", TPU, Needs(10, GIB // 2))
    assert not caplog.messages


def test_available_memory_is_within_limits(monkeypatch):
    everything = available_memory()
    assert everything is None or everything > 0
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (4096, resource.RLIM_INFINITY))
    assert available_memory() == 4096
