"""The bench of damaged files: some files of each kind, those that once went wrong, and failures that it must see."""

from __future__ import annotations

import faulthandler
import os
import random
import signal

import pytest

import openmxu
from scripts.fuzz import __main__ as fuzz
from scripts.fuzz import cases
from scripts.fuzz.cases import KINDS, try_case

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")  # of Python 3.12 and newer


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind: str) -> None:
    outcomes = {try_case(kind, seed) for seed in range(25)}
    assert outcomes == {"refused", "right"}


def hang(chance: random.Random) -> None:
    while True:
        pass


def crash(chance: random.Random) -> None:
    if chance.random() < 0.5:
        raise KeyError("not an error for users")


def die(chance: random.Random) -> None:
    if chance.random() < 0.5:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)


def many_lines(chance: random.Random) -> None:
    raise openmxu.ModelError("one line\nand another one")


def take_memory(chance: random.Random) -> None:
    bytes(1 << 40)


@pytest.mark.parametrize(
    ("damage", "failed", "message"),
    [
        (hang, 3, "no answer within 1 seconds"),
        (crash, 2, "KeyError: 'not an error for users'"),
        (die, 2, "the process ended with status -11"),
        (many_lines, 3, "the error has several lines"),
        (take_memory, 3, "MemoryError"),
    ],
)
def test_failures_are_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damage: object, failed: int, message: str
) -> None:
    monkeypatch.setattr(fuzz, "_SECONDS", 1)
    monkeypatch.setitem(cases.KINDS, "arrays", damage)
    assert fuzz.main(["--kind", "arrays", "--count", "3"]) == 1
    text = capsys.readouterr().out
    assert f"{failed} failed" in text
    assert message in text


def test_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--count", "20"]) == 0
    assert "0 failed" in capsys.readouterr().out
