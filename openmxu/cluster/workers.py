"""Workers: this process, processes of this machine, or those of a Dask scheduler elsewhere."""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import openmxu
from openmxu.arch.errors import OpenmxuError
from openmxu.cluster.local import local_client

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Workers", "WorkersError", "has_cluster", "open_workers", "usable_cores"]

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")

_CONNECT_SECONDS = 10
"""Time limit for reaching a scheduler, and for its first worker."""

_LONELY_SECONDS = 60
"""How long work waits for a new worker when none is left."""

_POLL_SECONDS = 2
_AHEAD = 4
"""Tasks submitted for each thread of the workers, so that none waits for this process."""


class WorkersError(OpenmxuError):
    """Workers cannot be reached, or are lost. The message is one line."""


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_cluster() -> bool:
    """Whether Dask is installed, without which all work is done in this process."""
    return importlib.util.find_spec("distributed") is not None


class Workers:
    """Computes tasks. :func:`open_workers` makes it.

    Parameters
    ----------
    client
        The connection to Dask's scheduler; ``None`` to compute in this process.
    count
        Workers to expect.
    """

    def __init__(self, client: Client | None = None, count: int = 1) -> None:
        self._client = client
        self._count = count

    def wait(self) -> None:
        """Wait until all workers have started, for a minute at most. Only measurements of time need this."""
        if self._client is not None:
            with suppress(TimeoutError):
                self._client.wait_for_workers(self._count, timeout=_LONELY_SECONDS)

    def completed(
        self, function: Callable[[Shared, Task], Result], tasks: Iterable[Task], shared: Shared
    ) -> Generator[tuple[int, Result]]:
        """Compute ``function(shared, task)`` for each task; yields its number and its result as soon as it is there.

        A task whose worker is lost is computed by another one. So that results do not depend on the workers,
        ``function`` must depend on nothing but its arguments.

        Parameters
        ----------
        function
            A function of a module, which workers can import.
        tasks
            Taken as workers become free. Each, as each result, is sent from process to process.
        shared
            Sent once to each worker.

        Raises
        ------
        WorkersError
            No worker is left, a task ends each worker that takes it, or the scheduler is lost.
        Exception
            What ``function`` raises.
        """
        if self._client is None:
            for number, task in enumerate(tasks):
                yield number, function(shared, task)
            return
        yield from _submitted(self._client, function, tasks, shared)

    def in_order(
        self, function: Callable[[Shared, Task], Result], tasks: Iterable[Task], shared: Shared
    ) -> Iterator[Result]:
        """The same results in the order of the tasks, of which there may be infinitely many.

        When the caller takes no more, tasks ahead of it have been computed in vain.
        """
        early: dict[int, Result] = {}
        due = 0
        with closing(self.completed(function, tasks, shared)) as results:
            for number, result in results:
                early[number] = result
                while due in early:
                    yield early.pop(due)
                    due += 1


@contextmanager
def open_workers(
    count: int = 1, scheduler: str | None = None, modules: Sequence[str] = ("openmxu",)
) -> Iterator[Workers]:
    """Workers for the duration of a block.

    Parameters
    ----------
    count
        Processes of this machine; with 1 this process does all work.
    scheduler
        Address of a Dask scheduler, as ``tcp://host:8786``, whose workers are used instead.
    modules
        Modules that processes of this machine import before they start, rather than each of them when it needs them.

    Raises
    ------
    WorkersError
        The scheduler cannot be reached within ten seconds, has no workers, or they have another version of openmxu; or
        Dask is not installed.
    """
    if scheduler is None and count == 1:
        yield Workers()
        return
    if not has_cluster():
        raise WorkersError("several workers need Dask: install it with: pip install 'openmxu[cluster]'")
    with ExitStack() as stack:
        client = local_client(stack, count, modules) if scheduler is None else _connected(stack, scheduler)
        yield Workers(client, count if scheduler is None else 1)


def _connected(stack: ExitStack, scheduler: str) -> Client:
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = stack.enter_context(Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False))
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except TimeoutError:
        raise WorkersError(f"the scheduler at {scheduler} has no workers; start some with: dask worker") from None
    except (OSError, ValueError) as error:
        reason = "" if isinstance(error, OSError) else f": {error}"
        raise WorkersError(
            f"cannot reach a Dask scheduler at {scheduler} within {_CONNECT_SECONDS} seconds{reason}"
        ) from None
    own = _version()
    try:
        versions = client.run(_version)
    except ImportError as error:
        raise WorkersError(f"a worker of {scheduler} cannot import openmxu: {error}") from None
    for address, version in versions.items():
        if version != own:
            raise WorkersError(f"the worker at {address} has openmxu {version}, not {own}")
    return client


def _version() -> str:
    return openmxu.__version__


def _same(value: Shared) -> Shared:
    return value


def _submitted(
    client: Client, function: Callable[[Shared, Task], Result], tasks: Iterable[Task], shared: Shared
) -> Iterator[tuple[int, Result]]:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    waiting = enumerate(tasks)
    room = _AHEAD * max(1, sum(client.nthreads().values()))
    running: dict[Future, int] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # it is sent once
        # The result of a task, rather than scattered data, which nobody computes again when its worker is lost.
        common = client.submit(_same, shared, pure=False)
        try:
            while True:
                for number, task in itertools.islice(waiting, room - len(running)):
                    running[client.submit(function, common, task, pure=False)] = number
                if not running:
                    return
                for future in _done(client, running):
                    number = running.pop(future)
                    yield number, future.result()
        except KilledWorker:
            raise WorkersError("a task has ended every worker that took it; does it need too much memory?") from None
        except FutureCancelledError:
            raise WorkersError("the connection to the scheduler is lost") from None
        finally:
            if client.status == "running":
                client.cancel([common, *running])


def _done(client: Client, running: Iterable[Future]) -> list[Future]:
    """The futures that are done, of which there is at least one."""
    from distributed import wait

    lonely_since: float | None = None
    while True:
        try:
            with client.as_current():
                done = wait(list(running), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED").done
            return sorted(done, key=lambda future: future.key)
        except TimeoutError:
            if client.status != "running":
                raise WorkersError("the connection to the scheduler is lost") from None
            if client.nthreads():
                lonely_since = None
                continue
            lonely_since = lonely_since or time.monotonic()
            if time.monotonic() - lonely_since > _LONELY_SECONDS:
                raise WorkersError(f"no worker has been left for {_LONELY_SECONDS} seconds") from None
