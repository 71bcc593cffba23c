"""Reading what a command is given and writing what it makes: one-line errors, and never half a file."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.cli.errors import InputError, one_line

__all__ = ["STANDARD_STREAM", "read_array", "read_bytes", "read_text", "replacing", "write_array", "write_output"]

STANDARD_STREAM = Path("-")
"""Stands for standard input or output in the place of a file name."""


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def read_bytes(path: Path) -> bytes:
    """The contents of a file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == STANDARD_STREAM else path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {_reason(error)}") from None


def read_text(path: Path) -> str:
    """The contents of a UTF-8 file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read or is no text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from None


def read_array(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file.

    Raises
    ------
    InputError
        The file cannot be read, is no ``.npy`` file, is cut short or holds Python objects.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot read {path}: {_reason(error)}") from None
    except (ValueError, EOFError, SyntaxError, MemoryError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no readable .npy file: {one_line(error)}; numpy.save() writes one") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path} is an .npz archive, not a .npy file; numpy.save() writes one array")
    return array


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file that takes the place of ``path`` when the block ends well and vanishes when it does not.

    Entering the block already finds out whether the output can be written, so a long run does not fail at its end.
    Devices and pipes, which cannot be replaced, get the bytes after the block.

    Raises
    ------
    InputError
        The output cannot be written.
    """
    target = Path(os.path.realpath(path))
    in_place = target.exists() and not target.is_file()
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name[:64]}.", suffix=".tmp", dir=None if in_place else target.parent
        )
        os.close(handle)
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None
    temporary = Path(name)
    try:
        yield temporary
        if in_place:
            with temporary.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            temporary.chmod(_mode_of(target))
            temporary.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _mode_of(target: Path) -> int:
    """The permissions of a file that exists, or those that a new one gets."""
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a ``.npy`` file at ``path``, whatever its suffix."""
    with path.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def write_output(path: Path, contents: bytes) -> None:
    """Write a whole file, or nothing; ``-`` is standard output.

    Raises
    ------
    InputError
        The output cannot be written.
    """
    if path == STANDARD_STREAM:
        sys.stdout.flush()
        sys.stdout.buffer.write(contents)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(contents)
