"""Work in child processes: what becomes of a child, and what its helper process keeps for the next one."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable

import pytest

from openmxu.cluster import Workers, open_workers
from openmxu.cluster.children import ChildWork, Ending, run_in_child


@functools.cache
def prepared_by() -> int:
    return os.getpid()


def prepare(shared: str, task: str) -> None:
    if task == "unprepared":
        raise KeyError(shared)
    prepared_by()


def work(shared: str, task: str, report: Callable[[object], None]) -> None:
    report((shared, task, prepared_by(), os.getpid()))
    if task == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "exit":
        os._exit(3)
    if task == "hang":
        time.sleep(600)
    report("end")


WORK = ChildWork(prepare, work)


def run(task: str, shared: str = "shared", silence: float | None = None) -> Ending:
    return run_in_child(WORK, shared, task, key=shared, silence=silence)


def test_children_are_forks_of_one_helper():
    first, second = run("task"), run("task")
    assert first.status == second.status == 0
    (shared, task, helper, child), end = first.messages
    assert (shared, task, end) == ("shared", "task", "end")
    assert second.messages[0][2] == helper
    assert len({os.getpid(), helper, child, second.messages[0][3]}) == 4
    assert run("task", "another").messages[0][2] != helper


@pytest.mark.parametrize(("task", "status"), [("crash", -signal.SIGKILL), ("exit", 3)])
def test_a_child_that_ends_early(task, status):
    ending = run(task)
    assert (len(ending.messages), ending.status) == (1, status)
    assert run("task").status == 0


def test_a_silent_child_is_stopped():
    ending = run("hang", silence=2)
    assert ending.status is None
    with pytest.raises(ProcessLookupError):
        os.kill(ending.messages[0][3], 0)


def test_what_fails_in_preparation_is_reported():
    with pytest.raises(RuntimeError, match=r"^KeyError: 'shared'$"):
        run("unprepared")
    assert run("task").status == 0


def status(shared: str, task: str) -> int | None:
    return run(task, shared).status


def test_workers_have_children():
    tasks = ["task", "crash", "exit", "task"]
    expected = [0, -signal.SIGKILL, 3, 0]
    assert list(Workers().in_order(status, tasks, "shared")) == expected
    with open_workers(2) as workers:
        assert list(workers.in_order(status, tasks, "shared")) == expected
