"""A small run of ``scripts/exactness.py``: random models of every family, compared with ONNX Runtime."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import openmxu
from openmxu.device import Device
from openmxu.exact_session import exact_session
from scripts import exactness
from scripts.random_models import FAMILIES, Case, Family, comparison, reference
from scripts.random_models.graph import Graph
from scripts.random_models.pooling import global_average_pool

SEED = 17
SIZES = (2, 4, 8, 16, 32)
EXACT = {name for name, family in FAMILIES.items() if family.tolerance == 0}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture
def device() -> Iterator[Device]:
    with openmxu.open_device("interpreter", openmxu.Config()) as device:
        yield device


def test_interpreter(family: Family) -> None:
    totals = exactness.Totals()
    for size in SIZES:
        with openmxu.open_device("interpreter", openmxu.Config.for_size(size)) as device:
            for number in (size, 256 + size):  # one of each type
                case = family.case(SEED, number)
                result = exactness.compare(case, device)
                assert result.largest <= family.tolerance, case.text
                totals.add(result)
    assert totals.passed
    assert totals.outputs > 300, "too few outputs: give the family a larger batch"


def test_verilator(family: Family) -> None:
    with openmxu.open_device("verilator", openmxu.Config()) as device:
        for number in (3, 300):
            case = family.case(SEED, number)
            result = exactness.compare(case, device)
            assert result.largest <= family.tolerance, case.text
            assert result.outputs > 0


def test_models_are_reproducible(family: Family) -> None:
    first, second, other = family.case(1, 2), family.case(1, 2), family.case(2, 2)
    assert first.model.SerializeToString() == second.model.SerializeToString()
    assert (first.expected == second.expected).all()
    assert first.model.SerializeToString() != other.model.SerializeToString()


@pytest.mark.parametrize("name", sorted(EXACT))
def test_exact_families_run_in_integers(name: str, tmp_path: Path) -> None:
    """With ONNX Runtime's float kernels, results would depend on the order of additions."""
    path = tmp_path / "optimized.onnx"
    for number in (5, 260, 261):
        case = FAMILIES[name].case(SEED, number)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.log_severity_level = 3
        options.optimized_model_filepath = str(path)
        exact_session(case.model.SerializeToString(), options)
        operators = {node.op_type for node in onnx.load(path).graph.node}
        assert not operators & {"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "AveragePool", "Add"}


def test_expected_outputs_are_those_of_onnxruntime(family: Family) -> None:
    case = family.case(SEED, 4)
    assert (reference(case.model, case.inputs, case.is_optimized) == case.expected).all()


def test_a_wrong_device_is_found(family: Family, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = device.execute

    def disturbed(program, host_memory, weight_memory):
        events = execute(program, host_memory, weight_memory)
        host_memory ^= 0x10
        return events

    monkeypatch.setattr(device, "execute", disturbed)
    assert exactness.compare(family.case(SEED, 8), device).largest > family.tolerance


def test_averages_of_planes_without_variation_stay_within_onnxruntimes_range() -> None:
    for seed in range(64):
        graph = Graph(np.random.default_rng(seed), (1, 1, 1, 1), "uint8", 128, powers_of_two=seed % 2 == 0)
        global_average_pool(graph, graph.input)


def test_rows_that_come_along_with_a_read_overwrite_nothing_in_use() -> None:
    """A strip of few rows, the first of which have already been read, with neighbouring rows read from further on."""
    case = FAMILIES["chains"].case(0, 474)
    with openmxu.open_device("interpreter", openmxu.Config.for_size(2)) as device:
        assert exactness.compare(case, device).differing == 0


def run(monkeypatch: pytest.MonkeyPatch, command: str) -> int:
    monkeypatch.setattr(sys, "argv", [*shlex.split(command), "--workers", "1"])
    return exactness.main()


def test_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = "exactness.py --size 4 --outputs 500 --models 3 --family Gemm --family MatMulInteger"
    assert run(monkeypatch, command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "interpreter, S = 4, seed 0"
    assert [line.split()[0] for line in lines[1:]] == ["family", "Gemm", "MatMulInteger"]
    models, outputs, _, differ, *_ = lines[2].split()[1:]
    assert int(models) >= 3
    assert int(outputs) >= 500
    assert differ == "0"


def test_failures_can_be_repeated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(FAMILIES, "Gemm", dataclasses.replace(FAMILIES["Gemm"], tolerance=-1))
    assert run(monkeypatch, "exactness.py --size 4 --outputs 2000 --family Gemm") == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1].endswith("FAILED")
    again = [line for line in captured.err.splitlines() if "again: python scripts/" in line]
    assert len(again) == exactness.STOP_AFTER
    assert run(monkeypatch, again[-1].partition("python scripts/")[2]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["Gemm", "1"]


def test_refused_models_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(case: Case, device: Device) -> exactness.Comparison:
        raise openmxu.CompileError("not this one")

    monkeypatch.setattr(comparison, "compare", refuse)
    assert run(monkeypatch, "exactness.py --family Gemm") == 1
    assert "CompileError: not this one" in capsys.readouterr().err
    with pytest.raises(openmxu.CompileError):
        run(monkeypatch, "exactness.py --family Gemm --model 1")


def test_few_values_fail() -> None:
    totals = exactness.Totals()
    totals.add(exactness.Comparison(outputs=100, differing=0, largest=0, varied=50))
    assert totals.passed
    totals.add(exactness.Comparison(outputs=100, differing=0, largest=0, varied=0))
    assert not totals.passed
