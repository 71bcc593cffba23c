"""Programs that a server keeps, so that no client sends them again."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections import OrderedDict

from openmxu.program import Program
from openmxu.remote.contents import MOST_BYTES

__all__ = ["KeptPrograms", "digest_of"]


_NAME = "what the client sent"


def digest_of(content: bytes) -> bytes:
    """SHA-256 of a program file."""
    return hashlib.sha256(content).digest()


class KeptPrograms:
    """Programs by the digest of their files; the ones that were used last are kept.

    Parameters
    ----------
    most_bytes
        Bytes of their files together; a program that is longer alone is kept until the next one comes.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._programs: OrderedDict[bytes, tuple[Program, int]] = OrderedDict()

    def find(self, digest: bytes) -> Program | None:
        """The program with a digest."""
        if digest not in self._programs:
            return None
        self._programs.move_to_end(digest)
        return self._programs[digest][0]

    def keep(self, content: bytes) -> Program:
        """Read a program file and keep the program.

        Raises
        ------
        openmxu.program_file.ProgramFileError
            It is none.
        ValueError
            It is too large.
        """
        _check_sizes(content)
        program = Program.from_bytes(content, _NAME)
        if program.host_bytes > MOST_BYTES:
            raise ValueError(
                f"the program needs {program.host_bytes} bytes of host memory, the server has {MOST_BYTES}"
            )
        self._programs[digest_of(content)] = program, len(content)
        while len(self._programs) > 1 and sum(size for _, size in self._programs.values()) > self._most_bytes:
            self._programs.popitem(last=False)
        return program


def _check_sizes(content: bytes) -> None:
    """Check that a program file does not become much longer when it is decompressed."""
    try:
        sizes = [member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()]
    except (zipfile.BadZipFile, ValueError):
        return  # reading it explains that
    if sum(sizes) > MOST_BYTES:
        raise ValueError(f"{_NAME} has {sum(sizes)} bytes when it is decompressed; {MOST_BYTES} are possible")
