"""The example transformers: ONNX Runtime's integers on the interpreter and on the RTL, all products on the device."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import openmxu
from examples.char_lstm.characters import encode, unseen_text
from examples.char_transformer.generate import written
from examples.char_transformer.network import BLOCKS as WRITER_BLOCKS
from examples.char_transformer.network import NETWORK as WRITER
from examples.vision_transformer.network import BLOCKS, HEADS, TOKENS
from examples.vision_transformer.network import CHANNELS as VISION_CHANNELS
from examples.vision_transformer.network import NETWORK as VISION
from openmxu.arch.events import Counter
from openmxu.exact_session import exact_session
from openmxu.sim.cycle_model import predict

CONFIG = openmxu.Config.for_size(8, profile="full")
CONFIGS = [CONFIG, openmxu.Config.for_size(8), openmxu.Config.for_size(16)]


@pytest.fixture(scope="module")
def vision() -> openmxu.Program:
    return openmxu.compile(VISION.model(), CONFIG, batch=1)


@pytest.fixture(scope="module")
def writer() -> openmxu.Program:
    return openmxu.compile(WRITER.model(), CONFIG, batch=1)


def config_id(config: openmxu.Config) -> str:
    return f"{config.profile}-{config.size}"


def session(network) -> onnxruntime.InferenceSession:
    return exact_session(network.model().SerializeToString())


@pytest.mark.parametrize("config", CONFIGS, ids=config_id)
def test_digits(config: openmxu.Config) -> None:
    images, labels = (part[:12] for part in VISION.unseen())
    program = openmxu.compile(VISION.model(), config, batch=3)
    with openmxu.open_device("interpreter", config) as device:
        scores = program.run(device, images)["scores"]
    (expected,) = session(VISION).run(None, {"image": images})
    assert np.array_equal(scores, expected)
    assert (scores.argmax(axis=1) == labels).mean() > 0.9


def test_accuracy() -> None:
    """497 of the 500 digits that it was not trained on are read right."""
    images, labels = VISION.unseen()
    (scores,) = session(VISION).run(None, {"image": images})
    assert (scores.argmax(axis=1) == labels).sum() == 497


def test_attention_is_on_the_device(vision: openmxu.Program, writer: openmxu.Program) -> None:
    assert vision.device_share == writer.device_share == 1
    attention = sum(layer.multiply_adds for layer in vision.layers if layer.kind == "tensor product")
    assert attention == 2 * BLOCKS * TOKENS * TOKENS * VISION_CHANNELS
    assert sum(layer.kind == "tensor product" for layer in writer.layers) == 2 * WRITER_BLOCKS


def test_heads_take_no_work(vision: openmxu.Program) -> None:
    """Queries and keys are multiplied where the projections wrote them, and all heads are written side by side."""
    assert HEADS > 1
    moved = [layer.name for layer in vision.layers if layer.kind == "permutation"]
    assert not any(name.startswith("blocks") for name in moved)


@pytest.mark.parametrize("config", CONFIGS, ids=config_id)
def test_texts(config: openmxu.Config) -> None:
    """Every output of every character, keys and values included, at the beginning and where the window is full."""
    reference, program = session(WRITER), openmxu.compile(WRITER.model(), config, batch=1)
    names = [output.name for output in reference.get_outputs()]
    states = WRITER.beginning()
    random = np.random.default_rng(0)
    with openmxu.open_device("interpreter", config) as device:
        for step, number in enumerate(encode(unseen_text()[:6])):
            if step == 4:
                states = {name: random.normal(size=state.shape).astype(np.float32) for name, state in states.items()}
            given = {"character": np.array([[number]]), **states}
            results = program.run(device, given)
            expected = dict(zip(names, reference.run(names, given), strict=True))
            assert {name for name in names if not np.array_equal(results[name], expected[name])} == set()
            states = {name: results[following] for name, following in WRITER.states.items()}


def test_a_learned_text_goes_on(writer: openmxu.Program) -> None:
    with openmxu.open_device("interpreter", CONFIG) as device:
        text = "".join(written(writer, device, "The unified", 8, temperature=0, seed=0))
    assert text.startswith(" buffer")


@pytest.mark.build
def test_rtl(vision: openmxu.Program, writer: openmxu.Program) -> None:
    """A digit and two characters on the simulated RTL, with the integers of the interpreter."""
    image = VISION.inputs(1)
    results = {}
    for name in ("verilator", "interpreter"):
        with openmxu.open_device(name, CONFIG) as device:
            scores = vision.run(device, image)["scores"]
            if name == "verilator":
                cycles = device.counters[Counter.CYCLES]
            results[name] = scores, "".join(written(writer, device, "Th", 2, temperature=0, seed=0))
    assert np.array_equal(results["verilator"][0], results["interpreter"][0])
    assert results["verilator"][1] == results["interpreter"][1]
    assert predict(vision.instructions, CONFIG).cycles == pytest.approx(cycles, rel=0.001)
