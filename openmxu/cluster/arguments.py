"""The options of scripts that spread their work over workers, for :mod:`argparse`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from openmxu.cluster.workers import Workers, WorkersError, has_cluster, open_workers, usable_cores

__all__ = ["add_worker_options", "chosen_workers"]


def add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--workers N`` and ``--scheduler ADDRESS``, which exclude each other."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--workers", type=_count, metavar="N", help=f"processes of this machine (default {_default_count()})"
    )
    group.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers to use")


@contextmanager
def chosen_workers(options: argparse.Namespace) -> Iterator[Workers]:
    """The workers that the options of :func:`add_worker_options` name; all cores of this machine without any.

    Workers that cannot be reached, or are lost, end the script with one line and exit status 2.
    """
    try:
        with open_workers(options.workers or _default_count(), options.scheduler) as workers:
            yield workers
    except WorkersError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _default_count() -> int:
    return usable_cores() if has_cluster() else 1


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text!r}")
    return int(text)
