"""openmxu: an open, synthesizable matrix accelerator in the manner of Google's first TPU."""

import importlib.metadata
import logging

from openmxu.arch import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.compiler import CapacityError, CompileError, ModelError, ProfileError, UnsupportedOperatorError, compile
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang, NotLoadedError
from openmxu.devices import UnknownDeviceError, open_device
from openmxu.program import InputError, Program
from openmxu.program_file import ProgramFileError
from openmxu.quantizer import quantize
from openmxu.reporting import report

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

try:
    __version__ = importlib.metadata.version("openmxu")
except importlib.metadata.PackageNotFoundError:
    __version__ = "0+unknown"  # a clone that was never installed is no version

# Without it, warnings of a program that sets up no logging would appear on stderr.
logging.getLogger(__name__).addHandler(logging.NullHandler())
