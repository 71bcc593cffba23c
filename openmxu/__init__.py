"""openmxu: an open, synthesizable matrix accelerator in the manner of Google's first TPU."""

import importlib
import importlib.metadata
import logging
from typing import TYPE_CHECKING, Any

from openmxu.arch import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang, NotLoadedError
from openmxu.devices import UnknownDeviceError, open_device
from openmxu.program import InputError, Program
from openmxu.program_file import ProgramFileError
from openmxu.reporting import report

if TYPE_CHECKING:
    from openmxu.compiler import (
        CapacityError,
        CompileError,
        ModelError,
        ProfileError,
        UnsupportedOperatorError,
        compile,
    )
    from openmxu.quantizer import quantize

__all__ = [
    "CapacityError",
    "CompileError",
    "Config",
    "Device",
    "DeviceError",
    "DeviceFault",
    "DeviceHang",
    "InputError",
    "ModelError",
    "NotLoadedError",
    "OpenmxuError",
    "ProfileError",
    "Program",
    "ProgramFileError",
    "UnknownDeviceError",
    "UnsupportedOperatorError",
    "__version__",
    "compile",
    "open_device",
    "quantize",
    "report",
]

_COMPILER, _QUANTIZER = "openmxu.compiler", "openmxu.quantizer"
_IMPORTED_WHEN_USED = {
    "CapacityError": _COMPILER,
    "CompileError": _COMPILER,
    "ModelError": _COMPILER,
    "ProfileError": _COMPILER,
    "UnsupportedOperatorError": _COMPILER,
    "compile": _COMPILER,
    "quantize": _QUANTIZER,
}
"""Names and their modules, which take long to import, and which a process that only runs programs does not need."""


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_IMPORTED_WHEN_USED[name]), name)
    return value


try:
    __version__ = importlib.metadata.version("openmxu")
except importlib.metadata.PackageNotFoundError:
    __version__ = "0+unknown"  # a clone that was never installed is no version

# Without it, warnings of a program that sets up no logging would appear on stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())
