"""Every proof holds, and a unit that violates a claim is found."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from amaranth.hdl import Fragment, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from scripts.formal import Run, Together, plan, violations
from tb.formal.axi.planted import FAULTS, Fault, planted
from tb.formal.proof import Proof
from tb.formal.proofs import PROOFS

RUNS = plan([make() for make in PROOFS])


class Forgetful(wiring.Component):
    """Withdraws its output when its input is withdrawn."""

    def __init__(self) -> None:
        super().__init__({"input": In(stream.Signature(4)), "output": Out(stream.Signature(4))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wiring.connect(m, wiring.flipped(self.input), wiring.flipped(self.output))
        return m


class ForgetfulProof(Proof):
    def state(self, m: Module) -> None:
        self.claim(m, "what is offered stays", self.kept(m, self.unit.output))
        self.reach(m, self.unit.output.valid)


class Unreachable(Proof):
    def state(self, m: Module) -> None:
        self.assume(m, self.kept(m, self.unit.input))
        self.claim(m, "what is offered stays", self.kept(m, self.unit.output))
        self.assume(m, ~self.unit.input.valid)
        self.reach(m, self.unit.output.valid)


QUICK = [run for run in RUNS if run.mode == "cover" or not any(proof.takes_minutes for proof in run.proofs)]
SLOW = ("control", "managers", "scoreboard", "windows")
"""Modules with proofs that take the solver half a minute or more."""


def _marked(run: Run) -> object:
    is_slow = any(
        proof.takes_minutes or type(proof).__module__.endswith(f".{name}") for proof in run.proofs for name in SLOW
    )
    return pytest.param(run, id=run.name, marks=pytest.mark.slow if is_slow else ())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_signals_that_proofs_name_exist(run: Run) -> None:
    """Of slow proofs as well, which are only run with ``make test-all`` and ``make formal``."""
    top = Together(run.proofs)
    Fragment.get(top, "formal")
    assert top.ports


@pytest.mark.parametrize("run", [_marked(run) for run in QUICK])
def test_proofs(run: Run, tmp_path: Path) -> None:
    assert run.go(tmp_path) == ""


def test_broken_promises_are_found(tmp_path: Path) -> None:
    broken = (ForgetfulProof(Forgetful, "Forgetful"),)
    assert "FAIL" in Run("induction", "prove", 2, broken).go(tmp_path)
    assert "FAIL" in Run("bounded", "bmc", 5, (ForgetfulProof(Forgetful, "Forgetful"),)).go(tmp_path)
    assert "FAIL" in Run("cover", "cover", 5, (Unreachable(Forgetful, "Forgetful"),)).go(tmp_path)


def test_every_proof_claims_something() -> None:
    names = [proof.name for run in RUNS for proof in run.proofs if run.mode != "cover"]
    assert len(names) == len(PROOFS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_faults_still_fit_the_source(fault: Fault) -> None:
    """All of them are run with ``make formal``, and a few below."""
    before = getattr(fault.unit, fault.method)
    with planted(fault):
        assert getattr(fault.unit, fault.method) is not before
    assert getattr(fault.unit, fault.method) is before


QUICKLY_FOUND = ("registers: a response is withdrawn", "weights: bursts are not split")


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_planted_faults_are_found(name: str, tmp_path: Path) -> None:
    (fault,) = (fault for fault in FAULTS if fault.name == name)
    assert any(claim.startswith(fault.rule) for claim in violations(fault, tmp_path))


def test_a_fault_that_does_not_fit_is_reported() -> None:
    fault = dataclasses.replace(FAULTS[0], old="nowhere")
    with pytest.raises(ValueError, match=r"must contain 'nowhere' once, not 0 times$"), planted(fault):
        pass
