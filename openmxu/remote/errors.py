"""Exceptions of devices at an address."""

from __future__ import annotations

from openmxu.arch.errors import OpenmxuError
from openmxu.device import DeviceError

__all__ = ["AddressError", "ConnectionLostError", "RemoteError", "SettingError"]


class RemoteError(DeviceError):
    """The server cannot be reached, or refuses its device: the token, the certificate or the version is wrong."""


class ConnectionLostError(RemoteError):
    """The server or the way to it failed while it was used. The device must be opened again."""


class AddressError(OpenmxuError, ValueError):
    """It is not of the form grpc://HOST:PORT."""


class SettingError(OpenmxuError, ValueError):
    """Certificates, keys and tokens do not fit together, or a file of them cannot be read."""
