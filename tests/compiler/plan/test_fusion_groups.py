"""Division of networks into groups: tensors in one strip of the unified buffer, and tensors in host memory."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network
from openmxu.compiler.ir.network import Network, Tensor
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.buffers import Region
from openmxu.compiler.plan.costs import Costs
from openmxu.compiler.plan.fusion_groups import plan_groups
from openmxu.compiler.plan.slots import image_slots
from openmxu.compiler.target import Target
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import SAME, addition, convolution, image_network, residual_block


def large_planes_and_a_dense_layer() -> Network:
    """A convolution of 16 × 16 positions, one with 4 × 4 outputs, and a matrix product of all of them."""
    plane = Tensor(16, 16, 4, False)
    tensors = {"x": plane, "a": plane, "b": Tensor(4, 4, 16, False), "y": Tensor(1, 1, 12, False)}
    operations = [
        convolution("x", "a", 4, 4, SAME),
        convolution("a", "b", 4, 16, Window(4, 4, stride_y=4, stride_x=4)),
        convolution("b", "y", 16, 12, Window(4, 4)),
    ]
    return image_network(operations, tensors)


SMALL = Config(size=4, activation_lanes=1, unified_buffer_rows=900, accumulator_rows=256)


def test_a_dense_layer_sees_the_whole_batch() -> None:
    """Planes of all images do not fit at once, but the inputs of the dense layer do: its weights are read once."""
    network = large_planes_and_a_dense_layer()
    first, second = plan_groups(network, 8, 16, SMALL)
    assert (first.operations, second.operations) == (range(2), range(2, 3))
    assert len(first.strips) > 1
    assert [len(strip.images) for strip in second.strips] == [8]
    first_tile = 9 + 4 * 4 * (16 // 4)
    tiles = [
        item["weights"] // SMALL.tile_bytes + number
        for item in compile_network(network, SMALL, batch=8).instructions
        if item.word & 0xFF == Opcode.READ_WEIGHTS
        for number in range(item["tiles"])
    ]
    assert sum(tile >= first_tile for tile in tiles) == 4 * 4 * (16 // 4) * (12 // 4)
    assert sum(tile < first_tile for tile in tiles) > len(first.strips) * first_tile


def test_everything_together_where_it_fits() -> None:
    network = large_planes_and_a_dense_layer()
    (group,) = plan_groups(network, 8, 16, SMALL.replace(unified_buffer_rows=8192))
    assert (group.sources, group.targets) == (("x",), ("y",))
    assert [len(strip.images) for strip in group.strips] == [8]


@pytest.mark.parametrize("rows", [300, 600, 900, 1500, 8192])
def test_cut_networks_compute_the_same(rows: int) -> None:
    network, config = large_planes_and_a_dense_layer(), SMALL.replace(unified_buffer_rows=rows)
    assert differing_planes(network, config, np.random.default_rng(0), batch=4) == 0


def test_a_sum_of_tensors_from_before_and_within_a_group() -> None:
    """The shortcut of a residual block may be read from host memory."""
    network = residual_block()
    for rows in (560, 700, 1000, 8192):
        config = SMALL.replace(unified_buffer_rows=rows)
        assert differing_planes(network, config, np.random.default_rng(rows), batch=3) == 0
    groups = plan_groups(network, 3, 16, SMALL.replace(unified_buffer_rows=700))
    assert len(groups) > 1
    assert "x" in groups[-1].sources


def products(parents: tuple[int, ...], channels: int = 8) -> Network:
    """Matrix products, each of the result of an earlier one by its number, or of the input: number -1."""
    names = [f"r{number}" for number in range(len(parents))]
    sources = ["x" if parent < 0 else names[parent] for parent in parents]
    tensors = dict.fromkeys(["x", *names], Tensor(1, 1, channels, False))
    point = Window(1, 1)
    pairs = zip(sources, names, strict=True)
    return image_network([convolution(source, name, channels, channels, point) for source, name in pairs], tensors)


@pytest.mark.parametrize("rows", [600, 1300, 8192])
@pytest.mark.parametrize("parents", [(-1, -1), (-1, -1, -1), (-1, 0, -1, 1, -1), (-1, 0, 1, 2), (-1, 0, 1, 0)])
def test_products_in_waves(parents: tuple[int, ...], rows: int) -> None:
    """A strip stays in the unified buffer until the last product that reads it is done."""
    network, config = products(parents), SMALL.replace(unified_buffer_rows=rows)
    assert differing_planes(network, config, np.random.default_rng(0), batch=160) == 0


def test_waves_have_a_slot_for_every_strip_in_use() -> None:
    config = SMALL.replace(unified_buffer_rows=8192)
    slots = {}
    for parents in ((-1, 0, 1, 2), (-1, -1, -1), (-1, 0, 1, 0)):
        (group,) = plan_groups(products(parents), 160, 16, config)
        assert group.waves
        slots[parents] = group.slots
    assert slots == {(-1, 0, 1, 2): 2, (-1, -1, -1): 3, (-1, 0, 1, 0): 4}


def test_a_first_strip_of_few_images_where_reading_takes_long() -> None:
    """The array waits for it; the next one is read while the array works on it."""
    network, config = residual_block(), SMALL.replace(unified_buffer_rows=8192)
    (group,) = plan_groups(network, 8, 16, config)
    assert [len(strip.images) for strip in group.strips] == [8]
    (group,) = plan_groups(network, 8, 16, Target.of(config, host_rate=1))
    images = [len(strip.images) for strip in group.strips]
    assert images[0] < max(images)
    assert sum(images) == 8
    assert group.slots == 2
    assert [strip.images.start for strip in group.strips] == np.cumsum([0, *images[:-1]]).tolist()


def test_a_group_keeps_away_from_the_last_strip_before_it() -> None:
    """Its input can be read while the array works on that strip."""
    rows = 2000 - 16
    for batch, last in ((8, range(512, 1024)), (7, range(512))):
        first, second = plan_groups(
            large_planes_and_a_dense_layer(), batch, 16, SMALL.replace(unified_buffer_rows=2000)
        )
        assert (first.slots, first.first_row, first.last_rows) == (2, 0, last)
        assert second.last_rows == range(rows - second.slot_rows, rows)


def two_results_of_one_tensor() -> Network:
    """A tensor ``b`` of four planes, then ``c`` with one, of which ``d`` and ``e`` are made; ``y`` is their sum."""
    plane = Tensor(16, 16, 4, False)
    operations = [
        convolution("x", "b", 4, 16, SAME),
        convolution("b", "c", 16, 4, SAME),
        convolution("c", "d", 4, 4, SAME),
        convolution("c", "e", 4, 4, Window()),
        addition(("d", "e"), "y"),
    ]
    return image_network(operations, dict.fromkeys("xcdey", plane) | {"b": Tensor(16, 16, 16, False)})


@pytest.mark.parametrize(("operations", "rows", "apart"), [(range(4), 5, True), (range(2, 4), 2, False)])
def test_what_leaves_keeps_its_rows_while_it_is_written(operations: range, rows: int, apart: bool) -> None:
    """The next results come to other rows, unless the slot would have to be larger."""
    network = two_results_of_one_tensor()
    ((_, slot),) = image_slots(network, operations, {"d", "e"}, [1], 8192, 4)
    assert slot.rows == 256 * rows
    assert (slot.addresses["d"] != slot.addresses["e"]) is apart


def test_the_last_strip_is_written_beside_its_last_operation_alone() -> None:
    """The array takes the 256 rows of one tile for ``e``, and a row is written in a cycle."""
    costs = Costs.of(two_results_of_one_tensor(), Config(size=4, host_data_bytes=4))
    strips = [Region(range(1), range(16), range(16))]

    def waiting(targets: str) -> float:
        return costs.group(range(4), strips, 1, "x", targets) - costs.group(range(4), strips, 1, "x", "")

    assert waiting("e") == 0
    assert waiting("de") == 256
