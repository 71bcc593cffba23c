"""Arguments of the commands that go through the workloads."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from examples.tpu_v1.workloads import WORKLOADS
from scripts.tpu_v1.document import DOCUMENT

__all__ = ["Arguments", "read_arguments"]


@dataclass(frozen=True)
class Arguments:
    """The workloads to go through, and whether to write the table."""

    workloads: Sequence[str]
    write: bool


def read_arguments(description: str | None) -> Arguments:
    """The arguments of the command line; the first line of ``description`` says what the command does."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="only this one")
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    arguments = parser.parse_args()
    if arguments.write and arguments.workload:
        parser.error("--write needs all workloads")
    return Arguments(arguments.workload or tuple(WORKLOADS), arguments.write)
