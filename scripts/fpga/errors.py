"""What can go wrong between a description and a bitstream; each told in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DoesNotFitError", "FlowError", "MissingToolError", "NetlistError", "TimingError", "ToolError", "Usage"]


class FlowError(Exception):
    """Something went wrong."""


class MissingToolError(FlowError):
    """A tool is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is missing: pip install 'openmxu[fpga]'")


class ToolError(FlowError):
    """A tool failed."""

    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name}: {reason} ({log})")


class NetlistError(FlowError):
    """A netlist is there, but it is not the described hardware."""


class TimingError(FlowError):
    """A bitstream would run faster than its slowest path."""


@dataclass(frozen=True)
class Usage:
    """How much of something a design needs and a part has."""

    used: int
    available: int


class DoesNotFitError(FlowError):
    """A part has less than a design needs.

    Attributes
    ----------
    usage
        What the design needs of everything that the part has, by the place-and-route tool's names.
    """

    def __init__(self, part: str, usage: Mapping[str, Usage], reason: str = "") -> None:
        self.usage = dict(usage)
        over = [f"{name} {item.used} of {item.available}" for name, item in self.overflows.items()]
        super().__init__(f"does not fit {part}: {', '.join(over) or reason}")

    @property
    def overflows(self) -> dict[str, Usage]:
        """What there is too little of; empty where the placer found no place for another reason."""
        return {name: item for name, item in self.usage.items() if item.used > item.available}
