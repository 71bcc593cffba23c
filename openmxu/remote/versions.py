"""The versions of server and client, which must be the same."""

from __future__ import annotations

from collections.abc import Mapping

import openmxu
from openmxu.arch.events import INTERFACE_VERSION

__all__ = ["INTERFACE_KEY", "VERSION_KEY", "mismatch", "own_versions"]

VERSION_KEY, INTERFACE_KEY = "openmxu-version", "openmxu-interface"
"""Metadata of a call."""


def own_versions() -> dict[str, str]:
    """The versions of this side as metadata."""
    return {VERSION_KEY: openmxu.__version__, INTERFACE_KEY: str(INTERFACE_VERSION)}


def mismatch(client: Mapping[str, str]) -> str | None:
    """Why a server cannot work with a client of these versions; ``None`` if it can."""
    own = own_versions()
    for key, what in ((INTERFACE_KEY, "version {} of the instruction set"), (VERSION_KEY, "openmxu {}")):
        theirs = client.get(key, "unknown")
        if theirs != own[key]:
            return (
                f"the server has {what.format(own[key])} and the client {what.format(theirs)}: "
                "install the same openmxu on both"
            )
    return None
