"""Addresses of devices: grpc://HOST:PORT."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from openmxu.remote.errors import AddressError

__all__ = ["SCHEME", "Address", "is_address"]

SCHEME = "grpc://"

_PARTS = re.compile(r"(\[(?P<version6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/\[\]]+)):(?P<port>[0-9]{1,5})")


def is_address(device: str) -> bool:
    """Whether the name of a device is an address."""
    return device.startswith(SCHEME)


@dataclass(frozen=True)
class Address:
    """The host and the port of a server.

    Attributes
    ----------
    host
        A name or an IP address, without the brackets of IPv6.
    port
        From 0 to 65535; 0 lets a server choose.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, scheme: str = SCHEME) -> Address:
        """The address in a text, ``scheme`` and HOST:PORT.

        Raises
        ------
        AddressError
            It has another form.
        """
        match = _PARTS.fullmatch(text.removeprefix(scheme)) if text.startswith(scheme) else None
        port = int(match["port"]) if match else -1
        if match is None or port > 65535:
            raise AddressError(f"an address must be {scheme}HOST:PORT, as {scheme}127.0.0.1:8790, not {text!r}")
        return cls(match["version6"] or match["name"], port)

    @property
    def target(self) -> str:
        """HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on the same machine reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{SCHEME}{self.target}"
