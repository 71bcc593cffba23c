"""The driver in C lays tensors out, quantizes and dequantizes them as the driver in Python does, bit for bit."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.arch.isa import format_named
from openmxu.embedded import program_image
from openmxu.embedded.program_image import host_bytes
from openmxu.program import Program
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_tensor import HostTensor, Packing
from tests.embedded.running import ENVIRONMENT

CONFIGS = [openmxu.Config.for_size(size) for size in (2, 4, 8)]
BATCH = 3
SCALES = (0.1, 0.25, 0.007, 3.0, 1.5)

PACKING = Packing(
    *(5, 6, 3, 4, 2, 3),  # image, plane, pixels of a row
    *(1, 2, 2, 1, -1, -2),  # dilation, stride, origin
    fill=7,
)
TENSORS = {
    "vector": HostTensor("x", "float32", (10,), 10, "uint8", (0.125,), 3),
    "signed": HostTensor("x", "float32", (3, 5), 5, "int8", (0.3,), -7, fill=-7),
    "offset": HostTensor("x", "uint8", (7,), 7, "uint8", offset=192),
    "channels first": HostTensor("x", "float32", (5, 2, 3), 5, "int8", (0.05,), 0, channels_first=True),
    "two bytes": HostTensor("x", "float32", (4, 6), 6, "int16", (0.001,), 0),
    "four bytes": HostTensor("x", "int32", (9,), 9, "int32", fill=-2),
    "packed": HostTensor("x", "float32", (2, 5, 6), 2, "int8", (0.1,), 4, 0, True, PACKING, fill=4),
    "packed integers": HostTensor("x", "int16", (5, 6, 2), 2, "int16", packing=PACKING),
}


@pytest.fixture(scope="module")
def tool(build: Callable[..., Path]) -> Path:
    return build("tensors.c", {}, "-DOPENMXU_EXTERNAL_ACCESS")


def program(source: HostTensor, result: HostTensor, config: openmxu.Config = CONFIGS[0]) -> Program:
    """A program that does nothing with two tensors."""
    halt = format_named("Halt")()
    segment = DeviceSegment((source,), (result,), BATCH, None, 0, 1, (0, 0), (0, 0))
    size = max(tensor.offset + tensor.extent(BATCH, config.size) for tensor in (source, result))
    nothing = np.zeros(0, np.uint8)
    return Program(
        *(config, BATCH, (source.spec,), (result.spec,), (segment,), (halt,), nothing, nothing, size, 0, ()),
        layer_numbers=np.full(1, -1, np.int32),
    )


def converted(tool: Path, folder: Path, made: Program, values: np.ndarray, is_float: bool) -> tuple[bytes, bytes]:
    """Host memory with these values of the input, and the output that it is taken for."""
    (folder / "image").write_bytes(program_image(made))
    (folder / "from").write_bytes(values.tobytes())
    arguments = [folder / "image", str(int(is_float)), folder / "from", folder / "to"]
    result = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert result.returncode == 0, result.stderr
    both = (folder / "to").read_bytes()
    return both[: host_bytes(made)], both[host_bytes(made) :]


def floats(tensor: HostTensor) -> np.ndarray:
    """Floats of all kinds: within the range, halves between two integers, beyond the range, and no numbers."""
    generator = np.random.default_rng(1)
    limits = np.iinfo(tensor.stored)
    scale = np.float32((tensor.scale or (1.0,))[0])
    steps = generator.integers(max(limits.min, -300), min(limits.max, 300), (BATCH, *tensor.shape))
    values = (steps - tensor.zero_point + generator.choice([0.0, 0.5, 0.3], steps.shape)).astype(np.float32) * scale
    values.reshape(-1)[:6] = np.inf, -np.inf, np.nan, 1e30, -1e-40, -0.0
    return values


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"size {config.size}")
@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
def test_tensors(tool, tmp_path, tensor, config):
    plain = dataclasses.replace(tensor, packing=None)
    made = program(tensor, plain if tensor.packing is None else dataclasses.replace(plain, offset=0), config)
    limits = np.iinfo(tensor.stored)
    integers = np.random.default_rng(2).integers(limits.min, limits.max, (BATCH, *tensor.shape), tensor.stored, True)
    for is_float in (False, True)[: 1 if tensor.scale is None else 2]:
        values = floats(tensor) if is_float else integers
        memory, result = converted(tool, tmp_path, made, values, is_float)
        expected = np.zeros(len(memory), np.uint8)
        # As if the values were stored already, which is what integers are.
        as_integers = dataclasses.replace(tensor, dtype=tensor.stored, scale=None)
        (tensor if is_float else as_integers).store(values, expected, config.size)
        assert np.array_equal(np.frombuffer(memory, np.uint8), expected)
        (output,) = made.device_segments[0].outputs
        output = output if is_float else dataclasses.replace(output, dtype=output.stored, scale=None)
        loaded = output.load(expected, BATCH, config.size)
        assert np.array_equal(np.frombuffer(result, loaded.dtype).reshape(loaded.shape), loaded)


def test_a_scale_for_each_column(tool, tmp_path):
    source = HostTensor("x", "int8", (3, 5), 5, "int8")
    result = dataclasses.replace(source, name="y", dtype="float32", scale=SCALES, zero_point=2)
    made = program(dataclasses.replace(source, dtype="float32", scale=(1.0,)), result)
    values = np.random.default_rng(3).integers(-128, 128, (BATCH, 3, 5)).astype(np.float32)
    _, floats = converted(tool, tmp_path, made, values, True)
    expected = (values - 2) * np.array(SCALES, np.float32)
    assert np.array_equal(np.frombuffer(floats, np.float32).reshape(expected.shape), expected)
