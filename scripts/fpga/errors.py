"""Errors between a description and a bitstream, each with a message of one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DoesNotFitError", "FlowError", "MissingToolError", "NetlistError", "TimingError", "ToolError", "Usage"]


class FlowError(Exception):
    """An error of the FPGA flow."""


class MissingToolError(FlowError):
    """A tool is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is missing: pip install 'openmxu[fpga]'")


class ToolError(FlowError):
    """A tool failed."""

    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name}: {reason} ({log})")


class NetlistError(FlowError):
    """The netlist no longer matches the design."""


class TimingError(FlowError):
    """The clock of a bitstream is faster than its slowest path allows."""


@dataclass(frozen=True)
class Usage:
    """The amount of a resource that a design needs and a part has."""

    used: int
    available: int


class DoesNotFitError(FlowError):
    """A part has less than a design needs.

    Attributes
    ----------
    usage
        The design's use of each resource of the part, by the place-and-route tool's names.
    """

    def __init__(self, part: str, usage: Mapping[str, Usage], reason: str = "") -> None:
        self.usage = dict(usage)
        over = [f"{name} {item.used} of {item.available}" for name, item in self.overflows.items()]
        super().__init__(f"does not fit {part}: {', '.join(over) or reason}")

    @property
    def overflows(self) -> dict[str, Usage]:
        """The resources that the part has too few of; empty if the placer failed for another reason."""
        return {name: item for name, item in self.usage.items() if item.used > item.available}
