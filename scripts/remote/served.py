"""``openmxu serve`` in another process, with a certificate and a token made for it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from openmxu.remote.settings import VARIABLES

__all__ = ["Served"]

_PATIENCE = 120
"""Seconds in which a server ends."""


class Served:
    """A server that can be killed and started again at its address.

    Parameters
    ----------
    folder
        For its certificate, key and token.
    device, size
        What it serves.

    Attributes
    ----------
    address : str
    environment : dict
        That of clients.
    """

    def __init__(self, folder: Path, device: str, size: int) -> None:
        certificate, key, token = (folder / name for name in ("server.pem", "server.key", "token"))
        _make_certificate(certificate, key)
        token.write_text(secrets.token_hex(32))
        protection = ["--certificate", certificate, "--key", key, "--token-file", token]
        self._command = [
            sys.executable,
            "-m",
            "openmxu.cli",
            "serve",
            "--device",
            device,
            f"--size={size}",
            *protection,
        ]
        variables = {VARIABLES["authority"]: str(certificate), VARIABLES["token"]: token.read_text()}
        self.environment = {**os.environ, **variables}
        self.address = "grpc://127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        listen = ["--listen", self.address.removeprefix("grpc://")]
        self._process = subprocess.Popen([*self._command, *listen], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server does not start")
        self.address = line.split(" at ")[1].partition(";")[0]

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it as Ctrl-C does; returns its exit status."""
        return self._end(signal.SIGINT)

    def _end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        with self._process:
            return self._process.wait(_PATIENCE)


def _make_certificate(certificate: Path, key: Path) -> None:
    """A certificate that is its own authority, as docs/remote.md makes one."""
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=board"
    files = ["-addext", names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
