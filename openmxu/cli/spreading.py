"""The options of commands that spread their work over workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from openmxu.cli.errors import InputError, RunError
from openmxu.cluster import Workers, WorkersError, has_cluster, open_workers

__all__ = ["SchedulerOption", "WorkersOption", "spreading"]

WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Processes of this machine. Needs the extra cluster from 2 on."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers to use, as in tcp://host:8786."
    ),
]


@contextmanager
def spreading(
    workers: int | None, scheduler: str | None, modules: Sequence[str], default: int = 1
) -> Iterator[Workers]:
    """The workers that the options choose; without Dask, this process.

    Parameters
    ----------
    modules
        Those of the work, as of :func:`openmxu.cluster.open_workers`.
    default
        Workers of this machine if the options say nothing.

    Raises
    ------
    InputError
        The options exclude each other.
    RunError
        Workers cannot be reached, or are lost.
    """
    if workers is not None and scheduler is not None:
        raise InputError("--workers and --scheduler exclude each other: a scheduler has its own workers")
    count = default if workers is None else workers
    if scheduler is None and count > 1 and not has_cluster():
        if workers is not None:
            hint = "install Dask for more with: pip install 'openmxu[cluster]'"
            typer.echo(f"openmxu: note: one process does all of the work; {hint}", err=True)
        count = 1
    try:
        with open_workers(count, scheduler, modules) as opened:
            yield opened
    except WorkersError as error:
        raise RunError(str(error)) from None
