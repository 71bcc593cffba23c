"""Linear models of ai.onnx.ml, as scikit-learn's exporter writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openmxu
from openmxu import Program
from openmxu.exact_session import exact_session
from openmxu.quantizer.linear_models import replace_linear_models

CONFIG = openmxu.Config.for_size(8)
FEATURES, CLASSES = 6, 3
RANDOM = np.random.default_rng(0)
COEFFICIENTS = RANDOM.normal(size=(CLASSES, FEATURES)).astype(np.float32)
INTERCEPTS = RANDOM.normal(size=CLASSES).astype(np.float32)
VALUES = RANDOM.normal(size=(40, FEATURES)).astype(np.float32)


def node(operator: str, inputs: list[str], outputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, name=outputs[0], domain="ai.onnx.ml", **attributes)


def classifier(transform: str, **changes: object) -> onnx.NodeProto:
    given = {
        "coefficients": COEFFICIENTS.reshape(-1),
        "intercepts": INTERCEPTS,
        "classlabels_ints": [7, -2, 5],
        "post_transform": transform,
    }
    return node("LinearClassifier", ["x"], ["label", "scores"], **(given | changes))


def model(*nodes: onnx.NodeProto, outputs: dict[str, int]) -> onnx.ModelProto:
    """A model with two imports of ONNX's own operators, as skl2onnx writes it."""
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph(list(nodes), "linear", ports, results)
    imports = [helper.make_opsetid(domain, version) for domain, version in (("ai.onnx.ml", 1), ("", 17), ("", 17))]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    session = exact_session(proto.SerializeToString())
    return dict(zip([item.name for item in session.get_outputs()], session.run(None, {"x": VALUES}), strict=True))


SCORES = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX")

MODELS = {
    "scaler": model(
        node("Scaler", ["x"], ["y"], offset=[0.5] * FEATURES, scale=np.arange(1, FEATURES + 1, dtype=np.float32)),
        outputs={"y": TensorProto.FLOAT},
    ),
    "one scale": model(node("Scaler", ["x"], ["y"], offset=[0.5], scale=[3.0]), outputs={"y": TensorProto.FLOAT}),
    "regressor": model(
        node("LinearRegressor", ["x"], ["y"], coefficients=COEFFICIENTS[0], intercepts=INTERCEPTS[:1]),
        outputs={"y": TensorProto.FLOAT},
    ),
    "regressor of several": model(
        node("LinearRegressor", ["x"], ["y"], coefficients=COEFFICIENTS.reshape(-1), targets=CLASSES),
        outputs={"y": TensorProto.FLOAT},
    ),
} | {f"classifier, {transform}": model(classifier(transform), outputs=SCORES) for transform in TRANSFORMS}


@pytest.mark.parametrize("name", MODELS)
def test_same_in_other_operators(name: str) -> None:
    changed = onnx.ModelProto()
    changed.CopyFrom(MODELS[name])
    replace_linear_models(changed.graph)
    assert not any(item.domain for item in changed.graph.node)
    for output, array in run(MODELS[name]).items():
        np.testing.assert_allclose(run(changed)[output], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("changes", [{"post_transform": "PROBIT"}, {"classlabels_ints": [7, -2]}])
def test_what_stays(changes: dict[str, object]) -> None:
    """Other transforms, and another number of labels."""
    proto = model(classifier("NONE", **changes), outputs={"scores": TensorProto.FLOAT})
    replace_linear_models(proto.graph)
    assert [item.op_type for item in proto.graph.node] == ["LinearClassifier"]


def test_quantized_and_with_labels_from_the_host(tmp_path: Path) -> None:
    """A scaler, a classifier on the device, and operators of ai.onnx.ml on the host, also from a file."""
    proto = model(
        node("Scaler", ["x"], ["scaled"], offset=[0.1], scale=[2.0]),
        helper.make_node("Identity", ["scaled"], ["given"]),
        classifier("SOFTMAX"),
        node("Normalizer", ["scores"], ["y"], norm="L1"),
        outputs={"y": TensorProto.FLOAT, "label": TensorProto.INT64},
    )
    next(item for item in proto.graph.node if item.op_type == "LinearClassifier").input[0] = "given"
    quantized = openmxu.quantize(proto, VALUES)
    openmxu.compile(quantized, CONFIG).save(tmp_path / "model.mxu")
    program = Program.load(tmp_path / "model.mxu")
    assert program.device_share == 1
    with openmxu.open_device("interpreter", CONFIG) as device:
        results = program.run(device, VALUES)
    wanted = run(quantized)
    assert (results["label"] == wanted["label"]).all()
    np.testing.assert_allclose(results["y"], wanted["y"], rtol=1e-6)
    assert (results["label"] == run(proto)["label"]).mean() > 0.9


def test_a_vote_of_trees_is_not_quantized() -> None:
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    trees = node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        **{name: [0] for name in names},
        nodes_modes=["LEAF"],
        nodes_values=[0.0],
        n_targets=1,
        target_treeids=[0],
        target_nodeids=[0],
        target_ids=[0],
        target_weights=[1.5],
    )
    with pytest.raises(openmxu.ModelError, match="the model has no operator that ONNX Runtime quantizes"):
        openmxu.quantize(model(trees, outputs={"y": TensorProto.FLOAT}), VALUES)
