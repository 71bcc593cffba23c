"""Images of compiled programs, for the C driver to load."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.errors import OpenmxuError
from openmxu.arch.isa import WORD_BYTES, Instruction, encode_program
from openmxu.arch.registers import CONFIGURATION, configuration_value
from openmxu.arch.scrub import scrub_program
from openmxu.arch.watchdog_limit import WatchdogLimit
from openmxu.embedded.image_layout import (
    CHECKED,
    HEADER,
    IMAGE_ALIGNMENT,
    IMAGE_VERSION,
    MAGIC,
    TENSOR,
    checksum,
)
from openmxu.program import Program
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_tensor import HostTensor

__all__ = ["ExportError", "device_segment", "host_bytes", "program_image"]

_LONGEST_ANSWER = 1 << 26
"""Cycles in which any memory answers."""

_LINE_BYTES = 64
"""Size of host memory is a multiple of this: the line of a cache, so that nobody else's bytes share the last one."""


class ExportError(OpenmxuError, ValueError):
    """The C driver cannot run the program; the message says why."""


def device_segment(program: Program) -> DeviceSegment:
    """The only segment of a program that one run of the device computes.

    Raises
    ------
    ExportError
        The host computes a part of the program, or it has several segments, or states.
    """
    if program.host_segments:
        nodes = program.host_segments[0].nodes
        named = f"{nodes[0]} and {len(nodes) - 1} more" if len(nodes) > 1 else nodes[0] if nodes else "a part"
        raise ExportError(
            f"the host computes {named}, and the C driver computes nothing itself; export the part of the model that "
            "the device computes alone (openmxu compile --strict finds what it is not)"
        )
    if len(program.segments) != 1:
        raise ExportError(f"the program has {len(program.segments)} segments, and the C driver runs one")
    if program.states:
        raise ExportError(
            f"the program keeps the state {program.states[0].tensor.name!r} on the device, which the C driver does not "
            "set; compile it without states"
        )
    (segment,) = program.device_segments
    if segment.elements not in (None, segment.batch):
        raise ExportError(
            f"the model has {segment.elements} elements, but one run computes {segment.batch}; compile it with "
            f"a batch of {segment.elements}"
        )
    return segment


def host_bytes(program: Program) -> int:
    """Size of the buffer for host memory: that of the program, up to a whole line of a cache."""
    return -(-program.host_bytes // _LINE_BYTES) * _LINE_BYTES


def program_image(program: Program) -> bytes:
    """The image of a program; :mod:`openmxu.embedded.image_layout` describes it.

    Raises
    ------
    ExportError
        The C driver cannot run the program.
    """
    segment, config = device_segment(program), program.config
    tensors = (*segment.inputs, *segment.outputs)
    scales = [scale for tensor in tensors for scale in tensor.scale or ()]
    instructions = program.instructions[segment.start : segment.stop]
    scrub = () if config.features.has_scrubber else scrub_program(config)
    rings = b"".join(_ring(part) for part in (instructions, scrub) if part)
    weights = program.weights.tobytes()
    if scrub:
        weights = weights.ljust(config.tile_bytes, b"\0")  # its MatrixMultiply takes a tile of any weights

    size = _words(HEADER) * 4
    tensors_at = size
    scales_at = tensors_at + len(tensors) * len(TENSOR) * 4
    constants_at = scales_at + len(scales) * 4
    ring_at = _up(constants_at + program.constants.size, WORD_BYTES)
    weights_at = _up(ring_at + len(rings), IMAGE_ALIGNMENT)
    total = _up(weights_at + len(weights), 4)

    limit = max(WatchdogLimit(config).cycles((*scrub, *instructions)), _LONGEST_ANSWER)
    values = {
        "magic": MAGIC,
        "version": IMAGE_VERSION,
        "bytes": total,
        "batch": segment.batch,
        "inputs": len(segment.inputs),
        "outputs": len(segment.outputs),
        "tensors": tensors_at,
        "constants": constants_at,
        "constant_place": segment.constants[0],
        "constant_bytes": program.constants.size,
        "ring": ring_at,
        "ring_bytes": len(rings),
        "instructions": len(instructions),
        "scrub_instructions": len(scrub),
        "weights": weights_at,
        "weight_bytes": len(weights),
        "host_bytes": host_bytes(program),
        "time_limit": min(limit, (1 << 32) - 1),
    }
    if max(total, values["host_bytes"]) >= 1 << 32:
        raise ExportError(f"the program has {total} bytes and host memory {values['host_bytes']}: 4 GiB or more")
    image = np.zeros(total // 4, "<u4")
    content = image.view(np.uint8)
    place = 0
    for name, words, _ in HEADER:
        if name == "config":
            image[place : place + words] = [configuration_value(config, parameter) for parameter in CONFIGURATION]
        else:
            image[place] = values.get(name, 0)
        place += words
    for number, tensor in enumerate(tensors):
        record = _record(tensor, scales_at, is_input=number < len(segment.inputs))
        image[place : place + len(TENSOR)] = np.array([record[name] for _, name, _ in TENSOR], np.int64).astype("<u4")
        place += len(TENSOR)
        scales_at += 4 * len(tensor.scale or ())
    image[place : place + len(scales)] = np.array(scales, "<f4").view("<u4")
    for first, part in ((constants_at, program.constants.tobytes()), (ring_at, rings), (weights_at, weights)):
        content[first : first + len(part)] = np.frombuffer(part, np.uint8)
    image[CHECKED - 2 : CHECKED] = checksum(image[CHECKED:])
    return image.tobytes()


def _words(fields: Sequence[tuple[str, int, str]]) -> int:
    return sum(words for _, words, _ in fields)


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _ring(instructions: Sequence[Instruction]) -> bytes:
    """A ring with these instructions and one free place."""
    words: NDArray[np.uint8] = encode_program(instructions)
    return words.tobytes() + bytes(WORD_BYTES)


def _record(tensor: HostTensor, scales_at: int, *, is_input: bool) -> dict[str, int]:
    """The fields of a tensor's record; its scales are at ``scales_at``."""
    stored = np.dtype(tensor.stored)
    record = {
        "place": tensor.offset,
        "values": math.prod(tensor.shape),
        "columns": tensor.columns,
        "channels_first": int(tensor.channels_first),
        "value_bytes": stored.itemsize,
        "is_signed": int(stored.kind == "i"),
        "zero_point": tensor.zero_point,
        "scales": scales_at,
        "scale_count": len(tensor.scale or ()),
        "fill": tensor.fill,
        "outside": 0,
    }
    # A row of memory for each position, one below the other.
    record |= {"image_height": tensor.positions, "height": tensor.positions}
    record |= dict.fromkeys(("image_width", "width", "packed_rows", "packed_columns"), 1)
    record |= dict.fromkeys(("dilation_y", "dilation_x", "stride_y", "stride_x"), 1)
    record |= dict.fromkeys(("origin_y", "origin_x"), 0)
    packing = tensor.packing
    if packing is not None and is_input:
        for name in ("image_height", "image_width", "height", "width"):
            record[name] = getattr(packing, name)
        for name in ("dilation_y", "dilation_x", "stride_y", "stride_x", "origin_y", "origin_x"):
            record[name] = getattr(packing, name)
        record |= {"packed_rows": packing.rows, "packed_columns": packing.columns, "outside": packing.fill}
    return record
