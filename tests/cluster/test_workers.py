"""Workers: the same results on any number, lost workers, schedulers that are not there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.cluster import Workers, WorkersError, open_workers
from openmxu.cluster.evaluation import evaluate
from openmxu.models import DIGITS_MODEL, digits_test_split

TASKS = range(20)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Workers]:
    with open_workers(2) as workers:
        yield workers


def power(base: int, exponent: int) -> int:
    return base**exponent


def ends_its_first_worker(marker: str, number: int) -> int:
    if number == 3 and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def ends_every_worker(marker: str, number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def fails(shared: int, number: int) -> int:
    raise KeyError(f"task {number}")


def test_results_do_not_depend_on_the_number(two_workers):
    expected = {number: 3**number for number in TASKS}
    assert list(Workers().completed(power, TASKS, 3)) == list(expected.items())
    assert dict(two_workers.completed(power, TASKS, 3)) == expected


def test_what_a_task_raises_is_raised(two_workers):
    for workers in (Workers(), two_workers):
        with pytest.raises(KeyError, match="task 0"):
            list(workers.completed(fails, range(1), 0))


def test_lost_worker_loses_no_result(two_workers, tmp_path):
    marker = tmp_path / "ended"
    results = dict(two_workers.completed(ends_its_first_worker, TASKS, str(marker)))
    assert results == {number: number for number in TASKS}
    assert marker.exists()


def test_task_that_ends_every_worker_is_given_up(two_workers):
    with pytest.raises(WorkersError, match="ended every worker that took it"):
        list(two_workers.completed(ends_every_worker, range(1), ""))
    # The workers are replaced.
    assert dict(two_workers.completed(power, [1, 2], 5)) == {0: 5, 1: 25}


def test_evaluation_is_the_same_on_two_workers(two_workers):
    program = openmxu.compile(DIGITS_MODEL, openmxu.Config.for_size(8), effort=0)
    images, labels = digits_test_split()
    seen: list[int] = []
    with open_workers(1) as one:
        result = evaluate(program, images, labels, one, finished=seen.append)
    assert (result.elements, sum(seen), result.cycles) == (360, 360, None)
    assert result.accuracy == pytest.approx(0.9694, abs=1e-4)
    assert evaluate(program, images, labels, two_workers) == result
    with pytest.raises(openmxu.InputError, match=r"labels must be integers of shape \(360,\), not float64"):
        evaluate(program, images, np.zeros(360), two_workers)


def process(shared: None, number: int) -> int:
    time.sleep(0.05)  # so that both workers take some
    return os.getpid()


def test_evaluation_is_the_same_when_a_worker_is_killed_midway(two_workers):
    program = openmxu.compile(DIGITS_MODEL, openmxu.Config.for_size(8), effort=0)
    images, labels = (np.concatenate([array] * 3) for array in digits_test_split())
    expected = evaluate(program, images, labels, Workers())
    victim = dict(two_workers.completed(process, TASKS, None))[0]
    seen: list[int] = []

    def kill_once(elements: int) -> None:
        if not seen:
            os.kill(victim, signal.SIGKILL)
        seen.append(elements)

    assert evaluate(program, images, labels, two_workers, finished=kill_once) == expected
    assert sum(seen) == expected.elements == 1080
    assert victim not in dict(two_workers.completed(process, TASKS, None)).values()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_unreachable_scheduler(address, monkeypatch):
    monkeypatch.setattr("openmxu.cluster.workers._CONNECT_SECONDS", 0.5)
    with pytest.raises(WorkersError, match=f"cannot reach a Dask scheduler at {address}"), open_workers(1, address):
        pass
