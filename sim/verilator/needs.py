"""The time and memory that generating Verilog and building a simulation model take, estimated before they begin.

A machine with too little memory does not fail at once: it swaps for an hour, or ends another program. The estimates are
fits to measurements of S = 8 to 256 on two cores of an AMD EPYC, without other work on them; docs/verilog.md has these.
"""

from __future__ import annotations

import logging
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.sim.verilator.errors import MachineTooSmallError

__all__ = [
    "ANY_SIZE_VARIABLE",
    "Needs",
    "available_memory",
    "check_machine",
    "model_needs",
    "verilog_needs",
]

ANY_SIZE_VARIABLE = "OPENMXU_ANY_SIZE"
"""Environment variable that, unless it is empty, lets builds begin on machines that seem too small."""

_logger = logging.getLogger(__name__)

_MIB = 1 << 20
_COMPILER = 400
"""MiB of a compiler, whose files have a bounded size."""

_LONG = 120
"""Seconds from which on a user is warned."""


@dataclass(frozen=True)
class Needs:
    """An estimate.

    Attributes
    ----------
    seconds
        Time.
    memory
        Bytes of memory that are in use at the same time.
    """

    seconds: float
    memory: int

    def __str__(self) -> str:
        time = f"{self.seconds / 60:.0f} minutes" if self.seconds > 90 else f"{self.seconds:.0f} s"
        return f"about {time} and {_gib(self.memory)} of memory"


def verilog_needs(config: Config) -> Needs:
    """Estimate what generating Verilog takes that has each element as an instance."""
    size = config.size
    return Needs(3.5 + 0.06 * size + 0.00145 * size**2, round((150 + 2 * size + 0.08 * size**2) * _MIB))


def model_needs(config: Config, trace: str | None = None, cores: int | None = None) -> Needs:
    """Estimate what building the simulation model takes.

    Parameters
    ----------
    config
        The configuration.
    trace
        As for :func:`~openmxu.sim.verilator.library_path`: models with waveforms have each element as an instance.
    cores
        Number of compilers that run at the same time; that of the machine's processors if left out.
    """
    size, cores = config.size, cores or os.cpu_count() or 1
    if trace is None:
        seconds = 15 + 0.6 * size + 0.0007 * size**2
        python, verilator = 150 + 1.5 * size + 0.018 * size**2, 100 + 0.6 * size + 0.022 * size**2
    else:
        seconds = 18 + 1.7 * size + 0.035 * size**2
        python, verilator = 150 + 2 * size + 0.08 * size**2, 150 + 0.34 * size**2
    return Needs(seconds, round((python + max(verilator, _COMPILER * cores)) * _MIB))


def check_machine(what: str, config: Config, needs: Needs) -> None:
    """Refuse what the machine's memory has no room for, unless :data:`ANY_SIZE_VARIABLE` is set, and warn of what takes
    minutes.

    Raises
    ------
    MachineTooSmallError
        There is too little memory.
    """
    available = available_memory()
    if available is not None and needs.memory > available and not os.environ.get(ANY_SIZE_VARIABLE):
        raise MachineTooSmallError(what, config.size, str(needs), _gib(available), ANY_SIZE_VARIABLE)
    if needs.seconds > _LONG:
        _logger.warning("%s of S = %d takes %s", what, config.size, needs)


def available_memory() -> int | None:
    """Bytes of memory that programs can get without swapping, or ``None`` where that is not known."""
    limits = [*_machine(), *_control_group()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    return min(limits, default=None)


def _machine() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return []
    return [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]


def _control_group() -> list[int]:
    """The rest of a container's limit; what files take in its cache is free."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return [limit - used + int(statistics["inactive_file"])]
    except (OSError, ValueError, KeyError):
        return []  # no limit, which is the word max, or another version of control groups


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
