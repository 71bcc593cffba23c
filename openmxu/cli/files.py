"""Input and output files of commands: errors of one line, and files that are written completely or not at all."""

from __future__ import annotations

import io
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from openmxu.cli.errors import InputError
from openmxu.program_file import write_atomically

__all__ = [
    "ASSEMBLY_SUFFIXES",
    "STANDARD_STREAM",
    "archive_bytes",
    "array_bytes",
    "check_folder",
    "check_readable",
    "check_writable",
    "read_arrays",
    "read_bytes",
    "read_text",
    "saving",
    "write_folder",
    "write_output",
]

STANDARD_STREAM = Path("-")
"""In place of a file name: standard input or output."""

ASSEMBLY_SUFFIXES = (".s", ".asm")
"""Suffixes of assembly."""

_ARCHIVE = b"PK"

_UNREADABLE = (
    *(ValueError, EOFError, SyntaxError, TokenError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
    RuntimeError,  # zipfile raises it for unknown compression and encryption
)
"""Exceptions of numpy and zipfile for a damaged file."""

_STANDARD_OUTPUTS = (STANDARD_STREAM, Path("/dev/stdout"))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def check_readable(path: Path) -> None:
    """Check that a file can be read, and is not a pipe, which can be read only once.

    Raises
    ------
    InputError
        It cannot.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"cannot read {path}: not a regular file")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot read {path}: {_reason(error)}") from None


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
        The file cannot be read or is not UTF-8 text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from None


def read_arrays(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The array of a ``.npy`` file, or those of an ``.npz`` archive by name; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read, is neither, is cut short or holds Python objects.
    """
    contents = read_bytes(path)
    is_archive = contents.startswith(_ARCHIVE)
    if not is_archive and not contents.startswith(npy.MAGIC_PREFIX):
        raise InputError(f"{path} is no .npy file; numpy.save() writes one")
    try:
        if not is_archive:
            return npy.read_array(io.BytesIO(contents), allow_pickle=False)
        with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        kind, function = (".npz", "savez") if is_archive else (".npy", "save")
        raise InputError(f"{path} is no readable {kind} file: {error}; numpy.{function}() writes one") from None


def array_bytes(array: NDArray[Any]) -> bytes:
    """The contents of a ``.npy`` file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def archive_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The contents of an ``.npz`` archive."""
    stream = io.BytesIO()
    # Not numpy.savez: an array may have the same name as one of its parameters.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array_bytes(array))
    return stream.getvalue()


def check_writable(path: Path) -> None:
    """Check before a long run that its output can be written.

    Raises
    ------
    InputError
        The folder does not exist or is not writable, or the path is a folder.
    """
    if path in _STANDARD_OUTPUTS:
        return
    if path.is_dir():
        raise InputError(f"cannot write {path}: is a directory")
    folder = path.resolve().parent
    if not folder.exists():
        raise InputError(f"cannot write {path}: there is no directory {folder}")
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: {folder} is not a directory")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")


def write_output(path: Path, contents: bytes) -> None:
    """Write a whole file, or nothing; ``-`` is standard output.

    Raises
    ------
    InputError
        The output cannot be written.
    """
    if path in _STANDARD_OUTPUTS:
        sys.stdout.flush()
        sys.stdout.buffer.write(contents)
        return
    with saving(path):
        if path.exists() and not path.is_file():
            path.write_bytes(contents)  # a device or a pipe; its name may lead nowhere once resolved, as /dev/fd/3 does
        else:
            write_atomically(path, contents)


def check_folder(folder: Path) -> None:
    """Check before a long run that files can be written to a folder, or that it can be made.

    Raises
    ------
    InputError
        It is no folder, is not writable, or its own folder does not exist or is not writable.
    """
    if not folder.is_dir():
        check_writable(folder)
        if folder.exists():
            raise InputError(f"cannot write {folder}: is not a directory")
    elif not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {folder}: permission denied")


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files of a folder, which is made unless it exists: each a whole file, or nothing.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    check_folder(folder)
    if not folder.exists():
        with saving(folder):
            folder.mkdir()
    for name in texts:
        check_writable(folder / name)
    for name, text in texts.items():
        write_output(folder / name, text.encode())


@contextmanager
def saving(path: Path) -> Iterator[Path]:
    """A context in which a block writes ``path`` as a whole or not at all, with this module's errors.

    Raises
    ------
    InputError
        The output cannot be written.
    """
    check_writable(path)
    try:
        yield path
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {_reason(error)}") from None
