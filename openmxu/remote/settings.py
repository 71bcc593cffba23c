"""Certificates, keys and tokens of both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from openmxu.remote.address import Address
from openmxu.remote.errors import SettingError

__all__ = ["VARIABLES", "Access", "Protection"]

TOKEN_VARIABLE = "OPENMXU_REMOTE_TOKEN"

VARIABLES = {
    "token": TOKEN_VARIABLE,
    "authority": "OPENMXU_REMOTE_CA",
    "certificate": "OPENMXU_REMOTE_CERTIFICATE",
    "key": "OPENMXU_REMOTE_KEY",
}
"""Environment variables that a client reads where no option is given, by the name of the option."""

_LONGEST_TOKEN = 1000


@dataclass(frozen=True, kw_only=True)
class Access:
    """How a client reaches a server.

    Attributes
    ----------
    token
        The secret of the server, printable ASCII without blanks; ``None`` if it has none.
    authority
        File (PEM) with the certificate that the server's is signed with, or the server's own. With it the connection is
        encrypted. ``None``: the system's authorities if the server is another machine, and no encryption if it is not.
    certificate, key
        Files (PEM) with the client's certificate and its key, if the server asks for one.
    insecure
        Whether another machine may be used without encryption.
    """

    token: str | None = None
    authority: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        _check_token(self.token)
        _check_pair(self.certificate, self.key)

    @classmethod
    def of(cls, environment: Mapping[str, str], **options: str | Path | bool | None) -> Access:
        """The options that are given, and the variables of the environment for those that are not.

        Raises
        ------
        SettingError
            The token has other characters, or a certificate has no key.
        TypeError
            There is no such option.
        """
        unknown = options.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise TypeError(f"a device at an address has no option {min(unknown)!r}")
        found = {name: environment.get(variable) or None for name, variable in VARIABLES.items()}
        given = {name: value for name, value in options.items() if value is not None}
        return cls(**{**found, **given})  # type: ignore[arg-type]  # names are checked above

    def is_encrypted(self, address: Address) -> bool:
        """Whether TLS is used."""
        return self.authority is not None or not (address.is_loopback or self.insecure)

    def files(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """The contents of authority, key and certificate.

        Raises
        ------
        SettingError
            A file cannot be read.
        """
        return _read(self.authority), _read(self.key), _read(self.certificate)


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What a server asks of its clients.

    Attributes
    ----------
    token
        The secret that clients must have.
    certificate, key
        Files (PEM) with the server's certificate, authorities between it and the root behind it, and its key. With them
        connections are encrypted.
    client_authority
        File (PEM) with the certificate that those of all clients are signed with.
    insecure
        Whether other machines may use a server without encryption or token.
    """

    token: str | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    client_authority: str | Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        _check_token(self.token)
        _check_pair(self.certificate, self.key)
        if self.client_authority is not None and self.certificate is None:
            raise SettingError("certificates of clients need encryption: give the server's certificate and key too")

    def check(self, address: Address) -> None:
        """Check that a server may listen at an address.

        Raises
        ------
        SettingError
            Other machines could use it without encryption, or without token or certificate.
        """
        if address.is_loopback or self.insecure:
            return
        lacks = ["encryption (a certificate and its key)"] if self.certificate is None else []
        if self.token is None and self.client_authority is None:
            lacks.append("a token")
        if lacks:
            raise SettingError(
                f"{address.target} can be reached by other machines, which needs {' and '.join(lacks)}; "
                "127.0.0.1 can only be reached by this one"
            )

    def files(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """The contents of client_authority, key and certificate; raises as :meth:`Access.files`."""
        return _read(self.client_authority), _read(self.key), _read(self.certificate)


def _read(path: str | Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if b"-----BEGIN " not in content:
        raise SettingError(f"{path} is no PEM file: it has no line -----BEGIN …")
    return content


def _check_token(token: str | None) -> None:
    # It travels in a header of HTTP.
    if token is not None and (
        not 0 < len(token) <= _LONGEST_TOKEN or not all("!" <= character <= "~" for character in token)
    ):
        raise SettingError(f"a token has 1 to {_LONGEST_TOKEN} printable ASCII characters and no blanks")


def _check_pair(certificate: str | Path | None, key: str | Path | None) -> None:
    if (certificate is None) != (key is None):
        raise SettingError(
            f"a certificate and its key belong together: the {'key' if certificate else 'certificate'} is missing"
        )
