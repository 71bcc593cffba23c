"""Compiles the firmware, without LiteX's libraries: C files, a start file and a linker script."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import litex.soc
import numpy as np

from openmxu.embedded import driver_files

__all__ = ["FirmwareError", "compile_firmware", "firmware"]

_HERE = Path(__file__).with_name("firmware")
_COMPILER = "riscv64-unknown-elf-gcc"
_REMEDY = "apt install gcc-riscv64-unknown-elf"
_FLAGS = (
    *("-march=rv32im", "-misa-spec=2.2", "-mabi=ilp32", "-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror"),
    *("-ffreestanding", "-fno-builtin", "-ffunction-sections", "-nostdlib", "-nostartfiles", "-Wl,--gc-sections"),
    *("-D__vexriscv__", '-DCONFIG_CPU_NOP="nop"', "-DOPENMXU_NO_FLOAT"),
)


class FirmwareError(Exception):
    """The firmware cannot be compiled."""


def firmware(headers: Path, folder: Path) -> list[int]:
    """The words of the ROM: the firmware with the driver, compiled in ``folder`` against LiteX's headers.

    Raises
    ------
    FirmwareError
        As :func:`compile_firmware`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in driver_files().items():
        (folder / name).write_text(text)
    return compile_firmware([*sorted(_HERE.glob("*.c")), folder / "openmxu.c"], [folder, headers], folder)


def compile_firmware(sources: Sequence[Path], includes: Sequence[Path], folder: Path) -> list[int]:
    """Compile and link ``sources`` in ``folder``; returns the words of the ROM.

    Parameters
    ----------
    sources
        C files, besides the start file.
    includes
        Folders of headers: LiteX's generated ones, and those of the sources.
    folder
        Where to put ``firmware.elf`` and ``firmware.bin``.

    Raises
    ------
    FirmwareError
        The compiler is missing, or it failed; the message has its first lines.
    """
    if shutil.which(_COMPILER) is None:
        raise FirmwareError(f"{_COMPILER} is missing: {_REMEDY}")
    software = Path(litex.soc.__file__).parent
    headers = [
        *includes,
        *(software / "software" / name for name in ("include", "")),
        software / "cores" / "cpu" / "vexriscv",
        _HERE / "quiet",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    elf, binary = folder / "firmware.elf", folder / "firmware.bin"
    _run(
        [
            *(_COMPILER, *_FLAGS),
            *(f"-isystem{path}" for path in headers),
            *("-T", str(_HERE / "link.ld"), str(_HERE / "crt0.S")),
            *map(str, sources),
            *("-lgcc", "-o", str(elf)),
        ]
    )
    _run(["riscv64-unknown-elf-objcopy", "-O", "binary", str(elf), str(binary)])
    content = binary.read_bytes()
    return np.frombuffer(content + bytes(-len(content) % 4), "<u4").tolist()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FirmwareError(f"{command[0]} failed:\n" + "\n".join(done.stderr.splitlines()[:20]))
