"""The driver in C, and what it needs of a program: an image, as a binary file or as C source.

``openmxu.c`` and ``openmxu.h`` are the driver; the headers that they include are generated from the tables of
:mod:`openmxu.arch.registers` and :mod:`openmxu.embedded.image_layout`. ``docs/c_driver.md`` describes their use.
"""

from openmxu.embedded.c_source import DRIVER_FILES, c_files, c_name, driver_files
from openmxu.embedded.program_image import ExportError, program_image

__all__ = ["DRIVER_FILES", "ExportError", "c_files", "c_name", "driver_files", "program_image"]
