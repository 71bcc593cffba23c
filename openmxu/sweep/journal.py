"""The journal of a sweep: the results of finished points, which survive the end of the process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Journal"]


class Journal:
    """A file with a line for each finished point: a JSON object with ``key`` and ``result``.

    A line that was cut short, as a machine without power leaves it, is dropped when the journal is opened.

    Parameters
    ----------
    path
        Of the file, which is made if need be.
    restart
        Drop what is there.

    Raises
    ------
    OSError
        The file cannot be read or written.
    """

    def __init__(self, path: Path, *, restart: bool = False) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self.results: dict[str, dict[str, Any]] = {}
        whole = 0 if restart else self._read()
        os.ftruncate(self._file, whole)

    def _read(self) -> int:
        """Read the results; returns the number of bytes that hold them."""
        whole = 0
        for line in self.path.read_bytes().splitlines(keepends=True):
            try:
                if not line.endswith(b"\n"):
                    break
                entry = json.loads(line)
                self.results[entry["key"]] = entry["result"]
            except (ValueError, KeyError, TypeError):
                break
            whole += len(line)
        return whole

    def append(self, results: Mapping[str, dict[str, Any]]) -> None:
        """Add results by key; they are on the disk afterwards."""
        lines = (json.dumps({"key": key, "result": result}) + "\n" for key, result in results.items())
        data = "".join(lines).encode()
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)
        self.results.update(results)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)
