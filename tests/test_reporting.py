"""Reports add up to the counters of the hardware, and name the limiting unit."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import openmxu
import openmxu.models
from openmxu.arch.events import Counter
from openmxu.cli.networks import load_network
from openmxu.compiler import compile_network, conv_input, conv_network, gemm, gemm_input
from openmxu.reporting import LayerReport, Report
from tests.compiler.models.host_models import embedding
from tests.compiler.models.plane_networks import random_planes

CONFIG = openmxu.Config()


def only_layer(program: openmxu.Program) -> LayerReport:
    (layer,) = openmxu.report(program).layers
    return layer


def assert_adds_up(report: Report) -> None:
    total = report.total
    for name in ("cycles", "multiply_adds", "host_read_bytes", "host_write_bytes", "weight_bytes"):
        assert sum(getattr(layer, name) for layer in report.layers) == getattr(total, name), name
    # Halt belongs to no layer.
    assert sum(layer.instructions for layer in report.layers) == total.instructions - 1
    assert max(layer.unified_buffer_rows for layer in report.layers) == total.unified_buffer_rows
    for layer in (*report.layers, total):
        assert layer.utilization == pytest.approx(layer.multiply_adds / (report.size**2 * layer.cycles))
        # In a layer's cycles, the array only works for this layer.
        assert layer.busy["array"] <= layer.cycles
        assert layer.utilization <= 1
        kinds = ("array_active", "weight_stall", "weight_shift", "non_matrix")
        assert sum(layer.kinds[kind] for kind in kinds) == layer.cycles
        assert min(layer.kinds.values()) >= 0
    for kind, cycles in total.kinds.items():
        assert sum(layer.kinds[kind] for layer in report.layers) == cycles, kind


@pytest.mark.parametrize("what", ["product", "convolution"])
def test_totals_equal_the_hardware_counters(what: str) -> None:
    if what == "product":
        program, inputs = gemm(40, 50, 30, CONFIG), gemm_input(40, 50)
    else:
        network = conv_network(11, 20, 13, 12, kernel=3, stride=1, pool=2)
        program, inputs = compile_network(network, CONFIG, 1), conv_input(11, 13, 12)
    with openmxu.open_device("verilator", CONFIG) as device:
        device.load(program)
        first = device.run(inputs)
        device.clear_counters()
        again = device.run(inputs)
        counters = device.counters
    assert all(np.array_equal(again[name], first[name]) for name in first)
    total = openmxu.report(program).total
    assert abs(total.cycles / counters[Counter.CYCLES] - 1) < 0.02
    assert total.busy["array"] == counters[Counter.ARRAY_ACTIVE]
    assert total.host_read_bytes == counters[Counter.HOST_READ_BYTES]
    assert total.host_write_bytes == counters[Counter.HOST_WRITE_BYTES]
    assert total.weight_bytes == counters[Counter.WEIGHT_BYTES]
    for kind, cycles in total.kinds.items():
        assert cycles == pytest.approx(counters[Counter[kind.upper()]], abs=0.02 * total.cycles), kind


def test_the_modelled_device_counts_as_the_hardware() -> None:
    program, values = gemm(24, 24, 16, CONFIG), gemm_input(24, 24)
    counted = []
    for name in ("verilator", "model"):
        with openmxu.open_device(name, CONFIG) as device:
            device.load(program)
            device.run(values)
            counted.append(device.counters)
    hardware, model = counted
    assert len(model) == 10
    assert model == {counter: hardware[counter] for counter in model}


@pytest.mark.parametrize("seed", range(12))
def test_layers_add_up(seed: int) -> None:
    network = random_planes(np.random.default_rng(seed), (9, 8, 10), 5)
    assert_adds_up(openmxu.report(compile_network(network, CONFIG, 2)))


def test_dense_layers_add_up() -> None:
    program = openmxu.compile(openmxu.models.DIGITS_MODEL, CONFIG)
    report = openmxu.report(program)
    assert [layer.name for layer in report.layers] == ["dense0", "dense1"]
    assert (report.size, report.batch, report.memory_latency) == (8, program.batch, 4)
    assert_adds_up(report)


def test_limits() -> None:
    """Each limit, with a program in which nothing else can be the limit."""
    assert only_layer(gemm(256, 256, 256, CONFIG)).limit == "array"
    # One tile per row.
    assert only_layer(gemm(1, 512, 512, openmxu.Config.for_size(16))).limit == "weights"
    # A row of sums takes four cycles of the activation unit, and one cycle of the array.
    assert only_layer(gemm(2048, 8, 8, CONFIG)).limit == "activation"
    # A row of 16 bytes takes two beats; all columns of a row are activated in the same cycle.
    assert only_layer(gemm(2048, 16, 16, openmxu.Config.for_size(16, activation_lanes=16))).limit == "host"
    # One row through one tile: each step waits for the step before it.
    program = gemm(1, 8, 8, openmxu.Config(activation_lanes=8))
    assert openmxu.report(program, memory_latency=100).layers[0].limit == "latency"


def test_high_water_mark() -> None:
    """Parameters, 64 rows in each of two input planes, and room for two parts of the output."""
    assert only_layer(gemm(64, 16, 16, CONFIG)).unified_buffer_rows == 8 * 2 + 2 * 64 + 2 * 64


def test_memory_latency() -> None:
    program = gemm(8, 64, 64, CONFIG)
    assert openmxu.report(program, memory_latency=100).total.cycles > openmxu.report(program).total.cycles
    with pytest.raises(ValueError, match="memory_latency must be at least 1"):
        openmxu.report(program, memory_latency=0)


def test_the_bound_knows_the_rates() -> None:
    """Weights at 3 bytes per cycle, or rows at 5, are what the whole program waits for."""
    program = gemm(1, 512, 512, CONFIG)
    report = openmxu.report(program, weight_rate=3)
    assert report.total.limit == report.total.bound_by == "weights"
    assert report.total.bound == report.total.busy["weights"] == 512 * 512 // 3
    assert 0.95 < report.total.bound_ratio <= 1
    assert report.as_dict()["weight_rate"] == 3.0
    program = gemm(2048, 8, 8, openmxu.Config(activation_lanes=8))
    report = openmxu.report(program, host_rate=Fraction(5, 2))
    assert report.total.limit == report.total.bound_by == "host"
    assert report.total.bound == report.total.busy["host"] >= 2048 * 8 * 2 // 5
    assert sum(layer.bound for layer in report.layers) == pytest.approx(report.total.bound, abs=1)
    assert report.as_dict()["host_rate"] == 2.5


def test_segments_are_bound_by_several_parts() -> None:
    """Segments with the host between them: no part is busy for as long as the sum of their bounds."""
    model = load_network("vision_transformer").model()
    total = openmxu.report(openmxu.compile(model, openmxu.Config.for_size(16), batch=1, effort=0)).total
    assert total.bound_by == "array" == max(total.busy, key=total.busy.__getitem__)
    assert total.bound > total.busy["array"]


def test_a_bound_is_not_the_dispatchers() -> None:
    """One row through one tile: most cycles are those of handing instructions over."""
    layer = only_layer(gemm(1, 8, 8, openmxu.Config(activation_lanes=8)))
    assert layer.busy["dispatch"] > layer.bound == layer.busy[layer.bound_by]


def test_nodes_on_the_host() -> None:
    report = openmxu.report(openmxu.compile(embedding(), CONFIG))
    assert [segment.nodes for segment in report.segments if segment.where == "host"] == [
        ("words (Gather)", "scaled (Mul)"),
        ("y (Softmax)", "best (ArgMax)"),
    ]


def test_json() -> None:
    report = openmxu.report(gemm(8, 8, 8, CONFIG))
    assert json.loads(json.dumps(report.as_dict()))["layers"][0]["name"] == "gemm"
