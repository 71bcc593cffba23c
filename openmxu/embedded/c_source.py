"""C source files: the driver with its generated headers, and programs as arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from openmxu.driver.c_header import HEADER_NAME, c_header
from openmxu.embedded.image_layout import IMAGE_ALIGNMENT, IMAGE_HEADER_NAME, image_header
from openmxu.embedded.program_image import device_segment, host_bytes, program_image
from openmxu.program import Program
from openmxu.segments.host_tensor import HostTensor

__all__ = ["DRIVER_FILES", "c_files", "c_name", "driver_files"]

DRIVER_FILES = ("openmxu.h", "openmxu.c", "openmxu_linux.h", "openmxu_linux.c")
"""The files of the driver that are not generated."""

_TAKEN = ("openmxu", "openmxu_image", "openmxu_registers")
"""Names of the driver's files."""

_WORDS_PER_LINE = 8


def driver_files() -> dict[str, str]:
    """The driver for any device and program: the text of each file by its name."""
    folder = files("openmxu.embedded")
    written = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in DRIVER_FILES}
    return {**written, HEADER_NAME: c_header(), IMAGE_HEADER_NAME: image_header()}


def c_name(text: str) -> str:
    """A name in C, in lower case, for the name of a model or of a tensor."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return f"model_{name}".rstrip("_") if not name or name[0].isdigit() or name in _TAKEN else name


def c_files(program: Program, name: str) -> dict[str, str]:
    """A program as ``<name>.c`` and ``<name>.h``: the text of each file by its name.

    Parameters
    ----------
    name
        Beginning of all names in the files: letters of ``a`` to ``z``, digits and ``_``.

    Raises
    ------
    openmxu.embedded.ExportError
        The C driver cannot run the program.
    """
    image = program_image(program)
    return {f"{name}.h": _header(program, name, len(image)), f"{name}.c": _source(name, image)}


def _header(program: Program, name: str, image_bytes: int) -> str:
    segment, upper = device_segment(program), name.upper()
    core = f"cores of {program.config.size} x {program.config.size}, profile {program.config.profile}"
    lines = [
        f"/* A program for openmxu {core}; its image is in {name}.c.",
        " *",
        " * Written by openmxu compile.",
        " */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define {upper}_BATCH {segment.batch} /* elements of one run */",
        f"#define {upper}_IMAGE_BYTES {image_bytes}",
        f"#define {upper}_HOST_BYTES {host_bytes(program)} /* inputs, outputs and constants */",
        "",
        f"/* The image of the program, at a multiple of {IMAGE_ALIGNMENT}. */",
        f"extern const uint32_t {name}_image[{image_bytes // 4}];",
    ]
    for what, tensors in (("INPUT", segment.inputs), ("OUTPUT", segment.outputs)):
        lines += ["", f"/* {what.capitalize()}s: their numbers, and the values of one element. */"]
        for number, (label, tensor) in enumerate(zip(_labels(tensors), tensors, strict=True)):
            prefix = f"{upper}_{what}_{label}"
            lines += [
                f"/* {_described(tensor)} */",
                f"#define {prefix} {number}",
                f"#define {prefix}_VALUES {math.prod(tensor.shape)}",
            ]
    return "\n".join([*lines, "", "#endif", ""])


def _labels(tensors: Sequence[HostTensor]) -> list[str]:
    """Different names for macros; a number makes two tensors differ whose names are the same in C."""
    labels: list[str] = []
    for number, tensor in enumerate(tensors):
        label = c_name(tensor.name).upper()
        labels.append(label if label not in labels else f"{label}_{number}")
    return labels


def _described(tensor: HostTensor) -> str:
    """Type, shape and quantization of a tensor, for a comment."""
    printable = re.sub(r"[^\x20-\x7e]|\*/|/\*|\?\?", "_", tensor.name)
    shape = " x ".join(map(str, tensor.shape)) or "1"
    text = f"{printable}: {tensor.stored}, {shape}"
    if tensor.scale is None:
        return text
    scales = f"{tensor.scale[0]:.9g}" if len(tensor.scale) == 1 else f"a scale for each of {len(tensor.scale)} columns"
    return f"{text}; (value - {tensor.zero_point}) * {scales}"


def _source(name: str, image: bytes) -> str:
    words = [f"{word:#x}" for word in np.frombuffer(image, "<u4").tolist()]
    rows = (
        f"    {', '.join(words[start : start + _WORDS_PER_LINE])},\n" for start in range(0, len(words), _WORDS_PER_LINE)
    )
    return (
        f"/* Written by openmxu compile; {name}.h describes it. */\n"
        f'#include "{name}.h"\n\n'
        f"__attribute__((aligned({IMAGE_ALIGNMENT}))) const uint32_t {name}_image[{len(words)}] = {{\n"
        f"{''.join(rows)}}};\n"
    )
