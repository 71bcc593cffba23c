"""Amaranth comes without types: everything but enumerations is Any."""

from typing import Any

def __getattr__(name: str) -> Any: ...
