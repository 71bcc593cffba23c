"""Errors of a LiteX system around the core."""

from openmxu.arch.errors import OpenmxuError

__all__ = ["LiteXMissingError"]


class LiteXMissingError(OpenmxuError, ImportError):
    """A package of LiteX is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'openmxu[litex]'")
        self.name = package
