"""Binary program files: consecutive 16-byte words, written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from openmxu.arch.errors import OpenmxuError
from openmxu.arch.isa import WORD_BYTES, Instruction, encode_program

__all__ = ["ProgramFileError", "read_program", "write_atomically", "write_program"]


class ProgramFileError(OpenmxuError, ValueError):
    """The file does not hold a whole number of instruction words."""


def read_program(path: str | os.PathLike[str]) -> list[Instruction]:
    """The instructions of a binary program file, legal or not.

    Raises
    ------
    ProgramFileError
        The file does not hold a whole number of words.
    OSError
        The file cannot be read.
    """
    data = Path(path).read_bytes()
    if len(data) % WORD_BYTES:
        raise ProgramFileError(
            f"{os.fspath(path)}: {len(data)} bytes are no whole number of {WORD_BYTES}-byte instruction words; "
            "the file is truncated or no program"
        )
    words = (data[start : start + WORD_BYTES] for start in range(0, len(data), WORD_BYTES))
    return [Instruction(int.from_bytes(word, "little")) for word in words]


def write_program(path: str | os.PathLike[str], instructions: Iterable[Instruction]) -> None:
    """Write a binary program file as :func:`write_atomically` does."""
    write_atomically(path, encode_program(instructions).tobytes())


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` so that ``path`` holds either all of it or what it held before.

    A link keeps pointing at its file; a device or a pipe, which cannot be replaced, is written directly.

    Raises
    ------
    OSError
        The file cannot be written; nothing is left behind.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
