"""Models cut into segments of device and host, anywhere in the graph."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import openmxu
from openmxu import Program
from openmxu.compiler import import_model, import_network, translate
from openmxu.compiler.ir.network import Network
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.levels import cut
from openmxu.compiler.plan import network_plan
from openmxu.compiler.plan.network_plan import CompiledNetwork
from openmxu.compiler.plan.planned_network import PlannedNetwork
from openmxu.driver import MappedDevice
from openmxu.exact_session import exact_session
from openmxu.reporting import segment_reports
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import INPUTS, dequantize, layer, model, node
from tests.compiler.models.images import BATCH as IMAGES
from tests.compiler.models.images import CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters
from tests.compiler.models.segmented_models import MODELS, VALUES, residual
from tests.driver.registers import CONFIG, InterpretedRegisters

CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")


def inputs(count: int) -> np.ndarray:
    return random_bytes(np.random.default_rng(3), "uint8", (count, INPUTS))


def expected(proto: onnx.ModelProto, values: np.ndarray) -> np.ndarray:
    return exact_session(proto.SerializeToString()).run(None, {"x": values})[0]


def kinds(program: Program) -> list[str]:
    return [segment.where for segment in segment_reports(program)]


@pytest.mark.parametrize(
    ("name", "segments", "share"),
    [
        ("between layers", "device host device", 1),
        ("around", "device host device", 1),
        ("real weights", "device host device", (50 * 30 + 30 * 30) / (50 * 30 + 2 * 30 * 30)),
        ("idle", "device host", 1),
        ("residual", "device host device host", 1),
    ],
)
def test_segments(name: str, segments: str, share: float) -> None:
    program = openmxu.compile(MODELS[name](), CONFIG)
    assert " ".join(kinds(program)) == segments
    assert program.device_share == pytest.approx(share)


def test_nothing_is_compiled_before_all_segments_are_known_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second segment that is too large costs no second compilation of the first one."""
    compiled, plan = [], PlannedNetwork.of
    proto = MODELS["between layers"]()
    last = openmxu.compile(proto, CONFIG).layers[-1].name

    def planned(network: Network, config: openmxu.Config, batch: int) -> PlannedNetwork:
        if network.operations[-1].name == last:
            raise openmxu.CapacityError(f"node {last!r}: too large", last)
        return plan(network, config, batch)

    def compile_planes(*given: object) -> CompiledNetwork:
        compiled.append(given)
        return network_plan.compile_planes(*given)

    monkeypatch.setattr(PlannedNetwork, "of", planned)
    monkeypatch.setattr(translate, "compile_planes", compile_planes)
    program = openmxu.compile(proto, CONFIG)
    assert kinds(program) == ["device", "host"]
    assert len(compiled) == 1


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_same_as_onnx_runtime(tmp_path: Path, name: str, count: int) -> None:
    """From a file, in executions of three elements, and without a device."""
    proto, values = MODELS[name](), inputs(count)
    openmxu.compile(proto, CONFIG, batch=3).save(tmp_path / "model.mxu")
    wanted = expected(proto, values)
    evaluated = import_model(proto).evaluate({"x": values})["y"]
    with openmxu.open_device("interpreter", CONFIG) as device:
        result = Program.load(tmp_path / "model.mxu").run(device, values)["y"]
    # Softmax of all elements at once may differ from that of three in the last bit of a float32.
    np.testing.assert_allclose(result, wanted, rtol=1e-6)
    np.testing.assert_allclose(evaluated, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_segments_of_a_program_that_stays_loaded(name: str) -> None:
    """Behind registers every segment has its own ring of instructions, and all of them share the memories."""
    program, values = openmxu.compile(MODELS[name](), CONFIG, batch=3), inputs(4)
    with openmxu.open_device("interpreter", CONFIG) as device:
        wanted = program.run(device, values)["y"]
    with MappedDevice(InterpretedRegisters()) as device:
        for _ in range(2):
            assert (program.run(device, values)["y"] == wanted).all()


def test_integers_are_exchanged() -> None:
    """What two segments of the device use is exchanged as bytes, and dequantized by both of them."""
    program = openmxu.compile(MODELS["around"](), CONFIG)
    last = program.segments[-1]
    assert {tensor.name: tensor.dtype for tensor in last.inputs} == {"h": "uint8", "s": "uint8"}


def test_fixed_batch() -> None:
    proto = MODELS["between layers"]()
    for item in (*proto.graph.input, *proto.graph.output):
        item.type.tensor_type.shape.dim[0].dim_value = 2
    program = openmxu.compile(proto, CONFIG)
    assert (program.batch, program.segments[1].batch) == (2, 2)
    values = inputs(4)
    wanted = [expected(proto, part) for part in np.split(values, 2)]
    with openmxu.open_device("interpreter", CONFIG) as device:
        assert (program.run(device, values)["y"] == np.concatenate(wanted)).all()


def test_reports_add_segments_up() -> None:
    """The layers of all segments add up to the whole."""
    program = openmxu.compile(MODELS["between layers"](), CONFIG)
    report = openmxu.report(program)
    for field in ("instructions", "cycles", "multiply_adds", "host_read_bytes", "weight_bytes"):
        assert sum(getattr(layer, field) for layer in report.layers) <= getattr(report.total, field)
    assert sum(layer.cycles for layer in report.layers) == report.total.cycles
    assert [layer.name for layer in report.layers] == ["sums", "y"]
    assert report.total.multiply_adds == 64 * (50 * 30 + 30 * 30)


@pytest.mark.parametrize("name", MODELS)
def test_strict(name: str) -> None:
    with pytest.raises(openmxu.UnsupportedOperatorError, match=r"^node '(soft|wide|y)' "):
        import_network(MODELS[name]())


def test_strict_names_other_nodes() -> None:
    nodes = [*layer(output="h"), dequantize("h")]
    nodes += [node("Softmax", "h_real", f"soft{number}") for number in range(8)]
    nodes.append(node("Sum", " ".join(f"soft{number}" for number in range(8)), "y"))
    with pytest.raises(openmxu.UnsupportedOperatorError) as caught:
        import_network(model(nodes, VALUES, ("uint8", "float32")))
    assert str(caught.value).startswith("node 'soft0' (Softmax): ")
    assert str(caught.value).endswith(
        "either: 'soft1' (Softmax), 'soft2' (Softmax), 'soft3' (Softmax), "
        "'soft4' (Softmax), 'soft5' (Softmax) and 3 more"
    )


def random_graph(random: np.random.Generator) -> onnx.GraphProto:
    """Nodes with random operators on random tensors made before."""
    nodes = []
    for number in range(int(random.integers(1, 40))):
        names = ["x", *(f"t{index}" for index in range(number))]
        operator = str(random.choice([*CONVERSIONS, "Add", "QLinearConv"]))
        count = 1 if operator in CONVERSIONS and random.random() < 0.8 else 2
        used = random.choice(names[-8:], size=min(count, len(names)), replace=False)
        nodes.append(helper.make_node(operator, list(used), [f"t{number}"]))
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", nodes[-1].output[0])]
    return helper.make_graph(nodes, "random", ports[:1], ports[1:])


@pytest.mark.parametrize("seed", range(200))
def test_cut_of_random_graphs(seed: int) -> None:
    """Every part has what it needs when its turn comes, every node is computed on its side, and no cut is needless."""
    random = np.random.default_rng(seed)
    graph = random_graph(random)
    view = GraphView.of(graph, 21)
    host = {index for index in range(len(graph.node)) if random.random() < 0.3}
    parts = cut(view, host)
    conversions = {index for index in range(len(graph.node)) if view.converts(index, *CONVERSIONS)} - host
    there = {"x"}
    for part in parts:
        assert there.issuperset(part.needed)
        assert all((index not in host) == part.is_device for index in part.nodes if index not in conversions)
        assert all(view.graph.node[index].op_type in (*CONVERSIONS, "Add") for index in part.repeated - host)
        assert not part.repeated & host
        assert len(set(part.wanted)) == len(part.wanted) > 0
        there.update(part.wanted)
    computed = [index for part in parts for index in part.nodes]
    assert len(set(computed)) == len(computed)
    assert set(view.working_nodes) == set(computed).union(*(part.repeated for part in parts))
    assert graph.output[0].name in there
    assert len(parts) <= 1 + longest_alternation(view, host)


def longest_alternation(view: GraphView, host: set[int]) -> int:
    """Parts that are needed at least: along one path the computation changes sides that often."""
    needed: dict[int, int] = {}
    for index in view.working_nodes:
        before = [view.makers[name] for name in view.graph.node[index].input if name in view.makers]
        needed[index] = max((needed[maker] + ((maker in host) != (index in host)) for maker in before), default=1)
    return max(needed.values())


@pytest.mark.parametrize("opset", [13, 17, 19, 21])
def test_without_onnx_runtime(monkeypatch: pytest.MonkeyPatch, opset: int) -> None:
    """ONNX's evaluator takes its place, also for operator sets of which it does not know all operators."""
    proto, values = MODELS["real weights"](), inputs(3)
    proto.opset_import[0].version = opset
    wanted = expected(proto, values)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with openmxu.open_device("interpreter", CONFIG) as device:
        assert (openmxu.compile(proto, CONFIG).run(device, values)["y"] == wanted).all()


def averages(scale: str) -> onnx.ModelProto:
    """A convolution, averages of two neighbours with the input's scale or another one, and a convolution."""
    pool = node("AveragePool", "h_real", "a", kernel_shape=[1, 2])
    first = node("QLinearConv", "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b", "h")
    last = node("QLinearConv", f"p {scale}_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y")
    nodes = [first, dequantize("h"), pool, node("QuantizeLinear", f"a {scale}_scale h_zero_point", "p"), last]
    return image_model(nodes, parameters(np.random.default_rng(0)) | {"other_scale": np.float32(0.0773)})


@pytest.mark.parametrize(("scale", "segments"), [("h", "device host device"), ("other", "device")])
def test_averages_in_the_middle(scale: str, segments: str) -> None:
    """Every other sum of two bytes is odd, and half of it is rounded up or down as float32 happens to fall."""
    proto = averages(scale)
    assert " ".join(kinds(openmxu.compile(proto, CONFIG))) == segments
    images = random_bytes(np.random.default_rng(5), "uint8", (IMAGES, CHANNELS, HEIGHT, WIDTH))
    assert differing(proto, images, CONFIG) == 0
    assert len(import_network(proto).operations) == 3


@pytest.mark.parametrize(("other", "sums"), [("s", []), ("h", ["combination"])])
def test_sums_for_the_host(other: str, sums: list[str]) -> None:
    """The host adds what the device makes to what it has itself, but does not ask for two tensors in place of one."""
    networks = import_model(residual(other)).networks
    assert [item.kind for network in networks for item in network.operations] == ["product", "product", *sums]


def test_a_tensor_that_nobody_wants() -> None:
    nodes = [*layer(output="y"), node("Softmax", "sums", "unused")]
    program = openmxu.compile(model(nodes, VALUES), CONFIG)
    assert kinds(program) == ["device"]


@pytest.mark.parametrize("operator", ["Add", "Mul"])
def test_real_numbers_for_the_host_are_exact(operator: str) -> None:
    """What is added to a quantized tensor, or multiplied with, is rounded to a finer grid by the device."""
    random = np.random.default_rng(2)
    nodes = [*layer(output="h"), dequantize("h"), node(operator, "h_real offset", "n"), node("Softmax", "n", "y")]
    proto = model(nodes, VALUES | {"offset": random.normal(size=30).astype(np.float32)}, ("uint8", "float32"))
    program = openmxu.compile(proto, CONFIG)
    assert kinds(program) == ["device", "host"]
    with openmxu.open_device("interpreter", CONFIG) as device:
        np.testing.assert_array_equal(program.run(device, inputs(40))["y"], expected(proto, inputs(40)))
