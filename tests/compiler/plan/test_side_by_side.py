"""Two convolutions of one tensor take turns: one keeps the array busy and the other the activation unit, or one takes
far less time than the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network
from openmxu.compiler.ir.fusion import fuse
from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.operations import Pooling, Result
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.fusion_groups import plan_groups
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import SAME, addition, convolution, image_network

DOWN = Window(3, 3, stride_y=2, stride_x=2, top=1, left=1)
SHORTCUT = Window(1, 1, stride_y=2, stride_x=2)
CONFIG = Config(size=4, activation_lanes=1, unified_buffer_rows=4096, accumulator_rows=256)
PLANE, HALF = Tensor(16, 16, 4, False), Tensor(8, 8, 8, False)
PLANE8 = Tensor(16, 16, 8, False)


def down(first: str, second: str) -> list:
    """Half of the positions and twice the channels of ``x``, by both windows in some order."""
    return [convolution("x", name, 4, 8, SHORTCUT if name == "s" else DOWN) for name in (first, second)]


def block(first: str, second: str) -> Network:
    """A residual block that halves its input, the sum of three convolutions."""
    operations = [*down(first, second), convolution("a", "b", 8, 8, SAME), addition(("b", "s"), "y")]
    return image_network(operations, {"x": PLANE, **dict.fromkeys(("s", "a", "b", "y"), HALF)})


def branches(first: str, second: str) -> Network:
    """The result of the shortcut leaves, and the other one is read once more."""
    operations = [*down(first, second), convolution("a", "y", 8, 8, SAME)]
    return image_network(operations, {"x": PLANE, **dict.fromkeys(("s", "a", "y"), HALF)})


def turns(network: Network, config: Config) -> list[int]:
    """The first two layers, as the array goes from one to the other."""
    program = compile_network(network, config, 1, effort=0)
    products = [item.word & 0xFF == Opcode.CONVOLVE for item in program.instructions]
    layers = [layer for layer, _ in itertools.groupby(program.layer_numbers[products])]
    return [layer for layer in layers if layer in (0, 1)]


@pytest.mark.parametrize("order", [("s", "a"), ("a", "s")])
@pytest.mark.parametrize("network", [block, branches])
@pytest.mark.parametrize("rows", [400, 640, 1024, 4096])
def test_exact(network, order: tuple[str, str], rows: int) -> None:
    config = CONFIG.replace(unified_buffer_rows=rows)
    assert differing_planes(network(*order), config, np.random.default_rng(rows), batch=3) == 0


def test_their_sections_alternate() -> None:
    network = block("s", "a")
    (group,) = plan_groups(network, 1, 16, CONFIG)
    assert group.operations == range(4)
    assert turns(network, CONFIG) == [1, 0, 1, 0]


@pytest.mark.parametrize(("window", "expected"), [(SHORTCUT, [0, 1, 0, 1]), (DOWN, [0, 1])])
def test_a_short_one_and_a_long_one_alternate(window: Window, expected: list[int]) -> None:
    """Both keep the array busy, but of a short one it would soon ask for rows that are still to be made."""
    operations = [
        convolution("x", "s", 8, 8, window),
        convolution("x", "a", 8, 8, DOWN),
        addition(("a", "s"), "y"),
    ]
    network = image_network(operations, {"x": PLANE8, **dict.fromkeys(("s", "a", "y"), HALF)})
    config = CONFIG.replace(activation_lanes=4)
    assert turns(network, config)[:4] == expected
    assert differing_planes(network, config, np.random.default_rng(0), batch=3) == 0


def test_not_in_the_same_place() -> None:
    """What the shortcut makes leaves and has the place of what stays: it must be gone before that is made."""
    network = branches("s", "a")
    (group,) = plan_groups(network, 1, 16, CONFIG)
    assert group.addresses["s"] == group.addresses["a"]
    assert turns(network, CONFIG) == [0, 1]


def pooled(window: Window, between: bool) -> Network:
    """A maximum of one of two convolutions of ``x``, right behind it or behind the other one."""
    first, second = (convolution("x", name, 4, 8, SAME) for name in ("a", "b"))
    maximum = Pooling(
        name="m",
        sources=("a",),
        target="m",
        window=window,
        maximum=True,
        input_signed=False,
        result=Result(np.ones((), np.float32), 0, 0, 255),
    )
    plane = Tensor(*window.outputs(16, 16), 8, False)
    operations = [first, second, maximum] if between else [first, maximum, second]
    return image_network(operations, {"x": PLANE, "a": PLANE8, "b": PLANE8, "m": plane})


@pytest.mark.parametrize(("stride", "between", "alone"), [(1, False, False), (1, True, True), (3, True, False)])
def test_a_maximum_of_overlapping_windows_waits_for_another_convolution(stride, between, alone):
    window = Window(3, 3, stride_y=stride, stride_x=stride, top=1, left=1, bottom=1, right=1)
    network = pooled(window, between)
    config = CONFIG.replace(accumulator_rows=1024)
    names = [operation.name for operation in fuse(network, config).operations]
    assert ("m" in names) is alone
    assert differing_planes(network, config, np.random.default_rng(stride), batch=3) == 0
