"""Errors of a LiteX system around the core."""

__all__ = ["LiteXMissingError"]


class LiteXMissingError(ImportError):
    """A package of LiteX is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'openmxu[litex]'", name=package)
