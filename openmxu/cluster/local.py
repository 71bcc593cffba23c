"""Workers of this machine: processes of a Dask cluster that ends with the block that opened it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["local_client"]

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""A worker for each core is all that a core can do."""


def local_client(stack: ExitStack, count: int, modules: Sequence[str]) -> Client:
    """The client of a cluster of processes, which ends with ``stack``. The processes may still be starting.

    They are forks of one process without threads that has imported ``modules``, if the system can do that.
    """
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    environment = _start_fork_server(modules) if forks else {}

    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # a lost worker is replaced, which needs no message
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver" if forks else "spawn",
        # What nobody sees, and costs each worker some percent.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.system-monitor.interval": "1h",
        "distributed.admin.tick.interval": "1s",
        "distributed.scheduler.active-memory-manager.start": False,
    }
    stack.enter_context(dask.config.set(settings))
    cluster = LocalCluster(
        n_workers=0,
        threads_per_worker=1,  # a device serves one thread
        processes=True,
        dashboard_address="127.0.0.1:0",  # it cannot be left out: any free port, so that two clusters may run
        memory_limit=None,  # a task may take what it takes in this process
        silence_logs=logging.CRITICAL,
        env=environment,
    )
    stack.enter_context(cluster)
    client = stack.enter_context(Client(cluster, set_as_default=False))
    cluster.scale(count)  # does not wait for them
    return client


def _start_fork_server(modules: Sequence[str]) -> Mapping[str, str]:
    """Start the process that workers are forks of, unless it runs; returns the environment that they need.

    It imports while this process does other things.
    """
    from multiprocessing import forkserver, resource_tracker

    multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed.nanny", *modules])
    # It takes modules from where this process has them, rather than from the working directory.
    path = os.pathsep.join(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))
    resource_tracker.ensure_running()  # it would unblock the signal below
    # Ctrl-C reaches all processes of a terminal: this one ends the others.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _environment({**_ONE_THREAD, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}):
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # What has changed since it was started; an empty variable is the same to Python as none.
    return {"PYTHONPATH": "", "PYTHONSAFEPATH": "", **os.environ, **_ONE_THREAD}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the duration of a block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
