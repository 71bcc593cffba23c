"""The bench of damaged files: some files of each kind, those that once went wrong, and failures that it must see."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
from collections.abc import Callable

import pytest

import openmxu
from openmxu.cluster import Workers
from scripts.fuzz import __main__ as fuzz
from scripts.fuzz import cases
from scripts.fuzz.__main__ import try_kind
from scripts.fuzz.cases import KINDS, try_case
from scripts.fuzz.files import Limits


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str) -> None:
    outcomes = {try_case(kind, seed) for seed in range(25)}
    assert outcomes == {"refused", "right"}


def hang(kind: str, seed: int) -> str:
    while True:
        pass


def crash(kind: str, seed: int) -> str:
    if seed != 1:
        raise KeyError("not an error for users")
    return "right"


def die(kind: str, seed: int) -> str:
    if seed != 1:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    return "refused"


def take_memory(kind: str, seed: int) -> str:
    bytes(1 << 40)
    return "right"


@pytest.mark.parametrize(
    ("attempt", "seconds", "failed", "message"),
    [
        (hang, 0.2, 3, "no answer within 0.2 seconds"),
        (crash, 60, 2, "KeyError: 'not an error for users'"),
        (die, 60, 2, "the process ended with status -11"),
        (take_memory, 60, 3, "MemoryError"),
    ],
)
def test_failures_are_seen(attempt: Callable[[str, int], str], seconds: float, failed: int, message: str) -> None:
    outcomes, failures = try_kind("arrays", 3, Workers(), Limits(seconds=seconds, attempt=attempt))
    assert outcomes.total() == 3
    assert outcomes["failed"] == len(failures) == failed
    numbers = [0, 1, 2] if failed == 3 else [0, 2]
    for seed, text in zip(numbers, failures, strict=True):
        assert text.startswith(f"arrays, --case {seed}: {message}")


def test_errors_of_several_lines_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def many_lines(chance: random.Random) -> None:
        raise openmxu.ModelError("one line\nand another one")

    monkeypatch.setitem(cases.KINDS, "arrays", many_lines)
    with pytest.raises(AssertionError, match="the error has several lines"):
        try_case("arrays", 1)


def test_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--count", "20", "--workers", "1"]) == 0
    assert "0 failed" in capsys.readouterr().out
