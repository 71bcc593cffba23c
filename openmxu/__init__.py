"""openmxu: an open, synthesizable matrix accelerator in the manner of Google's first TPU."""

from openmxu.arch import Config
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
    "ProfileError",
    "Program",
    "ProgramFileError",
    "UnknownDeviceError",
    "UnsupportedOperatorError",
    "compile",
    "open_device",
    "quantize",
    "report",
]
