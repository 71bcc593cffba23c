"""The TPU paper's workloads: layers, weights and multiply-adds as in its Table 1, and the arithmetic of its Table 3."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import openmxu
from examples.tpu_v1.graph import Graph
from examples.tpu_v1.workloads import WORKLOADS
from openmxu.sim.cycle_model import predict
from scripts.random_models import reference_outputs
from scripts.tpu_v1 import __main__ as command
from scripts.tpu_v1.measure import Measured, limiting_cycles, measure, occupied_elements
from scripts.tpu_v1.paper import HOST_RATE, ROWS, TABLE_1, TABLE_3, WEIGHT_RATE
from scripts.tpu_v1.plot import square_picture, utilization_picture
from scripts.tpu_v1.square import Product
from scripts.tpu_v1.square import table as square_table
from scripts.tpu_v1.utilization import passes, sized
from scripts.tpu_v1.utilization import table as utilization_table

ITEM = Measured(
    name="MLP0",
    instructions=10,
    cycles=1000,
    active=400,
    stall=200,
    shift=100,
    raw=50,
    starved=25,
    multiply_adds=200 * 65_536,
    occupied=300 * 65_536,
    limit=900,
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_have_the_layers_of_the_paper(name):
    workload = WORKLOADS[name]()
    layers, millions, intensity, batch = TABLE_1[name]
    assert workload.layers == layers
    assert workload.batch == batch
    assert workload.weights / 1e6 == pytest.approx(millions, rel=0.015)
    assert batch * workload.multiply_adds / workload.weights == pytest.approx(intensity, rel=0.01)


def test_weights_are_seeded():
    assert WORKLOADS["MLP1"]().model == WORKLOADS["MLP1"]().model


def test_lstm1_has_matrices_of_600_by_600():
    model = WORKLOADS["LSTM1"]().model
    assert sum(list(item.dims) == [600, 600] for item in model.graph.initializer) == 22


def test_a_graph_of_all_kinds_is_computed_as_by_onnx_runtime():
    graph = Graph(seed=7)
    source = graph.convolution(graph.input("image", 3, 12, 12), 6, 4, 2)
    point, pooled = (graph.convolution(source, 6, 1) for _ in range(2))
    other = graph.convolution(source, 6, 3)
    joined = graph.joined(point, other, graph.maximum(pooled, 3, 1))
    flat = graph.flat(graph.maximum(joined, 2, 2))
    gate, value = graph.dense(flat, 9, "Sigmoid"), graph.dense(flat, 9, "Tanh")
    graph.output(graph.add(graph.multiply(gate, graph.tanh(value)), graph.dense(flat, 9, "")))
    workload = graph.workload("all", 3)
    assert workload.layers == {"convolution": 4, "pooling": 2, "dense": 3, "vector": 3}
    image = np.random.default_rng(0).integers(-128, 128, (3, 3, 12, 12)).astype(np.int8)
    (expected,) = reference_outputs(workload.model, {"image": image}, optimize=False).values()
    assert int(expected.max()) - int(expected.min()) > 100
    config = openmxu.Config(size=8)
    program = openmxu.compile(workload.model, config, batch=3, strict=True, effort=0)
    with openmxu.open_device("interpreter", config) as device:
        (result,) = program.run(device, {"image": image}).values()
    assert abs(result.astype(int) - expected).max() <= 2  # products, and the sum of one


def test_a_cell_of_int16_is_computed_as_by_onnx_runtime():
    graph = Graph(seed=9, dtype="int16")
    both = graph.joined(graph.dense(graph.input("x", 20), 16), graph.input("h", 16))
    kept = graph.multiply(graph.dense(both, 16, "Sigmoid"), graph.input("c", 16))
    state = graph.add(kept, graph.multiply(graph.dense(both, 16, "Sigmoid"), graph.dense(both, 16, "Tanh")))
    graph.output(graph.multiply(graph.dense(both, 16, "Sigmoid"), graph.tanh(state)))
    model = graph.workload("cell", 4).model
    random = np.random.default_rng(0)
    sizes = {"x": 20, "h": 16, "c": 16}
    inputs = {name: random.integers(-20_000, 20_000, (4, size)).astype(np.int16) for name, size in sizes.items()}
    (expected,) = reference_outputs(model, inputs, optimize=False).values()
    assert expected.dtype == np.int16
    assert int(expected.max()) - int(expected.min()) > 5000
    program = openmxu.compile(model, openmxu.Config(size=8), batch=4, strict=True, effort=0)
    with openmxu.open_device("interpreter", openmxu.Config(size=8)) as device:
        (result,) = program.run(device, inputs).values()
    # A byte of a gate, or of a hyperbolic tangent, is 1/127 of the largest value.
    assert abs(result.astype(int) - expected).max() <= 2 * 32_767 / 4 / 127
    useful = sum(layer.multiply_adds for layer in program.layers)
    assert occupied_elements(program) == 2 * useful


def test_the_smallest_workload_comes_close_to_its_roofline():
    item = measure("MLP1", WORKLOADS["MLP1"]())
    assert item.share > 0.95
    assert item.active > TABLE_3["MLP1"][0] / 100 * item.cycles
    assert item.multiply_adds == 168 * WORKLOADS["MLP1"]().multiply_adds


def test_rows_of_the_table():
    rows = dict(zip(ROWS, ITEM.rows, strict=True))
    assert rows["array active"] == 40
    assert rows["useful MACs"] == pytest.approx(30)
    assert rows["unused MACs"] == pytest.approx(10)
    assert (rows["weight stall"], rows["weight shift"], rows["non-matrix"]) == (20, 10, 30)
    assert (rows["RAW stalls"], rows["input data stalls"]) == (5, 2.5)
    assert rows["TeraOps/s"] == pytest.approx(2 * 200 * 65_536 / 1000 * 700e6 / 1e12)
    assert ITEM.share == 0.9
    assert "| 6 non-matrix | ours | **30.0 %** |\n|  | paper | 17.5 % |\n" in command.table([ITEM])


@pytest.mark.parametrize("name", TABLE_3)
def test_rows_of_the_paper_add_up(name):
    active, useful, unused, stall, shift, other, *_ = TABLE_3[name]
    assert active + stall + shift + other == pytest.approx(100, abs=0.15)
    assert useful + unused == pytest.approx(active, abs=0.15)


def test_the_roofline_takes_the_longer_of_rows_and_weights_of_each_layer():
    program = openmxu.compile(WORKLOADS["MLP1"]().model, openmxu.Config.preset("tpu_v1"), batch=168, effort=0)
    report = openmxu.report(program, host_rate=HOST_RATE, weight_rate=WEIGHT_RATE)
    busy = [dict(layer.busy) for layer in report.layers]
    assert limiting_cycles(report) == sum(max(own["array"], own["weights"]) for own in busy)
    host = 10 * limiting_cycles(report)
    total = dataclasses.replace(report.total, busy={**report.total.busy, "host": host})
    assert limiting_cycles(dataclasses.replace(report, total=total)) == host


def test_rates_are_those_of_the_paper():
    assert float(WEIGHT_RATE) == pytest.approx(34 / 0.7)
    assert HOST_RATE == 20


def test_utilization_leaves_out_what_was_not_computed():
    assert passes(4096, sized(256)) == 16**2 * 2
    assert passes(64, sized(8)) == 64
    found = {(8, 64): 0.5, (256, 4096): 0.999}
    lines = utilization_table(found).splitlines()
    assert lines[2] == "| 8 | 0.500 |  |  |  |  |  |  |"
    assert lines[-1].endswith("| 0.999 |")
    assert utilization_picture(found) == utilization_picture(found)


def test_square_products():
    found = [Product(1000, 1e-3, 2.0, 1000, 0.5), Product(2000, 8e-3, 16.0, 500, 4.0)]
    assert found[0].rates == {"tpu_v1": 2e12, "numpy int8": 1e9, "numpy float32": 4e9}
    assert (
        square_table(found).splitlines()[-1]
        == "| 2,000 | 8.000 | 2.0000 | 16,000.000 | 0.0010 | 500 | 4,000.000 | 0.0040 |"
    )
    assert square_picture(found).startswith(b"<?xml")


def test_a_longer_queue_hides_the_way_through_the_array():
    """Convolutions of few rows for each instruction: the reason for the depth of the preset's queues."""
    graph = Graph(seed=8)
    graph.output(graph.convolution(graph.input("x", 192, 7, 7), 192, 3))
    model = graph.workload("conv", 16).model
    cycles = []
    for depth in (4, 16):
        config = openmxu.Config.preset("tpu_v1", command_queue_depth=depth)
        cycles.append(predict(openmxu.compile(model, config, batch=16, effort=0).instructions, config).cycles)
    assert cycles[1] < 0.7 * cycles[0]
