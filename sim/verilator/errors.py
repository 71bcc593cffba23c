"""Errors of building and running a model."""

from __future__ import annotations

from pathlib import Path

from openmxu.device import DeviceError

__all__ = ["BuildError", "BusError", "CacheError", "MachineTooSmallError", "MissingToolError"]


class BuildError(DeviceError):
    """The simulation model could not be built.

    Attributes
    ----------
    step : str
        The step of the build that failed.
    reason : str
        The first line in which a tool reports an error.
    log : Path
        File with all output of the tools.
    """

    def __init__(self, step: str, reason: str, log: Path) -> None:
        self.step = step
        self.reason = reason
        self.log = log
        super().__init__(f"{step} failed: {reason} (all messages: {log})")


class CacheError(DeviceError):
    """The folder in which built simulation models are kept cannot be used; the message says how to choose another one.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path, reason: str, variable: str) -> None:
        self.folder = folder
        super().__init__(
            f"simulation models cannot be kept in {folder}: {reason}; set {variable} to a folder that can be written"
        )


class MachineTooSmallError(DeviceError):
    """What is to be made takes more memory than the machine has; the message says how much, and how to go on anyway.

    Attributes
    ----------
    size : int
        S of the array.
    """

    def __init__(self, what: str, size: int, needs: str, available: str, variable: str) -> None:
        self.size = size
        super().__init__(
            f"{what} of S = {size} takes {needs}, and {available} are available; a smaller --size takes less, "
            f"{variable}=1 in the environment goes on anyway"
        )


class MissingToolError(DeviceError):
    """A tool that the build needs is not installed; the message says how to get it.

    Attributes
    ----------
    tool : str
    """

    def __init__(self, tool: str, remedy: str) -> None:
        self.tool = tool
        super().__init__(f"{tool} is needed to build the simulation model and was not found: {remedy}")


class BusError(DeviceError):
    """The hardware violated the rules of one of its ports, for example by an address outside the attached memory."""
