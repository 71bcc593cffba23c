"""Images with few channels: the packing done by the host, and the work that it saves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network, conv_network
from openmxu.compiler.plan.packing import pack_inputs
from openmxu.segments.host_tensor import HostTensor, Packing


def test_rows_hold_neighbouring_pixels() -> None:
    packing = Packing(
        image_height=5,
        image_width=7,
        height=3,
        width=4,
        rows=2,
        columns=3,
        dilation_y=2,
        dilation_x=1,
        stride_y=2,
        stride_x=3,
        origin_y=-1,
        origin_x=-2,
        fill=77,
    )
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (2, 5, 7, 2)).astype(np.uint8)
    packed = packing.pack(images)
    assert packed.shape == (2, 3, 4, 12)
    for y, x, row, column in np.ndindex(3, 4, 2, 3):
        lanes = packed[:, y, x].reshape(2, 2, 3, 2)[:, row, column]
        image_y, image_x = 2 * y - 1 + 2 * row, 3 * x - 2 + column
        if 0 <= image_y < 5 and 0 <= image_x < 7:
            assert (lanes == images[:, image_y, image_x]).all()
        else:
            assert (lanes == 77).all()


def test_channels_first() -> None:
    """Planes of 4 channels each, pixel by pixel; unused lanes are 0."""
    tensor = HostTensor("x", "uint8", (5, 2, 3), 5, "uint8", channels_first=True, offset=8)
    memory = np.full(200, 9, np.uint8)
    image = np.arange(1, 31, dtype=np.uint8).reshape(1, 5, 2, 3)
    tensor.store(image, memory, 4)
    assert tensor.extent(1, 4) == 2 * 6 * 4
    rows = memory[8 : 8 + 48].reshape(2, 6, 4)
    assert rows[0, 4].tolist() == image[0, :4, 1, 1].tolist()
    assert rows[1, 5].tolist() == [image[0, 4, 1, 2], 0, 0, 0]
    assert (tensor.load(memory, 1, 4) == image).all()


@pytest.mark.parametrize(
    ("channels", "size", "kernel", "stride", "positions", "plane"),
    [
        (1, 16, 3, 1, 1, (20, 22)),  # nine pixels in a row
        (3, 16, 3, 1, 3, (20, 24)),  # three pixels of a column
        (3, 32, 3, 2, 1, (10, 11)),  # one row for each output
        (3, 16, 7, 2, 14, (23, 27)),  # four pixels of a column, and then the other three
        (5, 8, 3, 1, 9, (20, 22)),  # no two pixels fit
    ],
)
def test_remaining_kernel_positions(
    channels: int, size: int, kernel: int, stride: int, positions: int, plane: tuple[int, int]
) -> None:
    network = conv_network(channels, 4, 20, 22, kernel=kernel, stride=stride, pool=1)
    packed = pack_inputs(network, size)
    window = packed.operations[0].window
    assert window.height * window.width == positions
    tensor = packed.tensors["x"]
    assert (tensor.height, tensor.width) == plane
    assert tensor.channels <= size
    program = compile_network(network, Config.for_size(size), effort=0)
    read = sum(item["rows"] for item in program.instructions if item.word & 0xFF == Opcode.READ_HOST_MEMORY)
    # Apart from padding, no more rows are read than the image has pixels.
    assert read <= (20 + kernel) * (22 + kernel) + 8


def test_an_input_with_several_uses_is_not_packed() -> None:
    network = conv_network(1, 4, 8, 8, kernel=3, stride=1, pool=1)
    again = dataclasses.replace(network.operations[0], target="z")
    twice = dataclasses.replace(
        network, operations=(*network.operations, again), tensors={**network.tensors, "z": network.tensors["y"]}
    )
    assert pack_inputs(twice, 16).inputs[0].host.packing is None
    assert pack_inputs(network, 16).inputs[0].host.packing is not None
