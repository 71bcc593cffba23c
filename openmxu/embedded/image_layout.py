"""The layout of program images for the C driver, as data: the exporter and the C structures derive from it.

An image is a sequence of little-endian words of 32 bits: the header, a record for each input and output, scales,
constants, the program's ring, the ring of the scrub program, and weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import CONFIGURATION

__all__ = [
    "CHECKED",
    "HEADER",
    "IMAGE_ALIGNMENT",
    "IMAGE_HEADER_NAME",
    "IMAGE_VERSION",
    "MAGIC",
    "TENSOR",
    "checksum",
    "image_header",
]

IMAGE_HEADER_NAME = "openmxu_image.h"

MAGIC = int.from_bytes(b"MXUP", "little")
IMAGE_VERSION = 1
"""Version of the layout; incremented when a field moves or changes its meaning."""

IMAGE_ALIGNMENT = 4096
"""Alignment of an image that is used in its place, and of the weights within it: that of WEIGHT_OFFSET."""

CHECKED = 5
"""The first word that the checksum covers; those before it are checked one by one."""

HEADER = (
    ("magic", 1, "OPENMXU_IMAGE_MAGIC"),
    ("version", 1, "OPENMXU_IMAGE_VERSION"),
    ("bytes", 1, "size of the image"),
    ("sum", 1, "sum of the words from OPENMXU_IMAGE_CHECKED on"),
    ("sum_of_sums", 1, "sum of that sum after each word"),
    ("config", len(CONFIGURATION), "the device's registers from CONFIG_SIZE on"),
    ("batch", 1, "batch elements that one run computes"),
    ("inputs", 1, "number of inputs"),
    ("outputs", 1, "number of outputs"),
    ("tensors", 1, "first byte of their records"),
    ("constants", 1, "first byte of the constants"),
    ("constant_place", 1, "their place in host memory"),
    ("constant_bytes", 1, "their size"),
    ("ring", 1, "first byte of the rings"),
    ("ring_bytes", 1, "size of both; each has its instructions and one free place"),
    ("instructions", 1, "number of instructions of the program"),
    ("scrub_instructions", 1, "of the scrub program, whose ring comes next; 0 where the core has a scrubber"),
    ("weights", 1, "first byte of the weights"),
    ("weight_bytes", 1, "their size"),
    ("host_bytes", 1, "size of host memory"),
    ("time_limit", 1, "cycles without progress after which the device stops the program"),
)
"""Fields of the header: name, number of words and meaning. Places are counted in bytes from the beginning."""

TENSOR = (
    ("uint32_t", "place", "first byte in host memory"),
    ("uint32_t", "values", "values of one batch element"),
    ("uint32_t", "columns", "values of one position: channels of a pixel"),
    ("uint32_t", "channels_first", "whether the columns are the first dimension, as in ONNX images"),
    ("uint32_t", "value_bytes", "bytes of a value: 1, 2 or 4"),
    ("uint32_t", "is_signed", "whether values are signed"),
    ("int32_t", "zero_point", "the integer that stands for 0"),
    ("uint32_t", "scales", "first byte of the scales, float each, in the image"),
    ("uint32_t", "scale_count", "0: none, 1, or one for each column"),
    ("int32_t", "fill", "what lanes without a column hold"),
    ("uint32_t", "image_height", "positions of the caller's tensor"),
    ("uint32_t", "image_width", ""),
    ("uint32_t", "height", "rows of memory of one element"),
    ("uint32_t", "width", ""),
    ("uint32_t", "packed_rows", "positions that share one row of memory"),
    ("uint32_t", "packed_columns", ""),
    ("int32_t", "dilation_y", "from one of them to the next"),
    ("int32_t", "dilation_x", ""),
    ("int32_t", "stride_y", "from one row of memory to the next"),
    ("int32_t", "stride_x", ""),
    ("int32_t", "origin_y", "position of the first one"),
    ("int32_t", "origin_x", ""),
    ("int32_t", "outside", "the value of positions outside of the caller's tensor"),
)
"""Fields of a tensor's record, a word each: C type, name and meaning."""


def checksum(words: NDArray[np.uint32]) -> tuple[int, int]:
    """The words ``sum`` and ``sum_of_sums`` for the words of an image from :data:`CHECKED` on."""
    sums = np.cumsum(words, dtype=np.uint32)
    return int(sums[-1]), int(np.sum(sums, dtype=np.uint32))


def image_header() -> str:
    """The text of ``openmxu_image.h``."""
    lines = [
        "/* Layout of images of compiled programs for openmxu: words of 32 bits, little-endian.",
        " *",
        " * Generated from openmxu/embedded/image_layout.py.",
        " *",
        " * SPDX-License-Identifier: BSD-2-Clause",
        " */",
        "#ifndef OPENMXU_IMAGE_H",
        "#define OPENMXU_IMAGE_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define OPENMXU_IMAGE_MAGIC {MAGIC:#010x}U",
        f"#define OPENMXU_IMAGE_VERSION {IMAGE_VERSION}",
        f"#define OPENMXU_IMAGE_ALIGNMENT {IMAGE_ALIGNMENT}",
        f"#define OPENMXU_IMAGE_CHECKED {CHECKED}",
        f"#define OPENMXU_INSTRUCTION_BYTES {WORD_BYTES}",
        f"#define OPENMXU_IMAGE_CONFIG_WORDS {len(CONFIGURATION)}",
        "",
        "typedef struct {",
        *(f"    uint32_t {name}{f'[{words}]' if words > 1 else ''}; /* {text} */" for name, words, text in HEADER),
        "} openmxu_image_header;",
        "",
        "/* An input or output in host memory: planes of rows of S values, each row value_bytes rows of S bytes. */",
        "typedef struct {",
        *(f"    {kind} {name};{f' /* {text} */' if text else ''}" for kind, name, text in TENSOR),
        "} openmxu_image_tensor;",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)
