"""Sessions: states remain in the unified buffer from one execution to the next."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.compiler import CapacityError, ModelError
from tests.compiler.models.recurrent_models import RecurrentModel

CONFIG = openmxu.Config.preset("tiny", unified_buffer_rows=1024)
LSTM_STATES = {"h0": "Y_h", "c0": "Y_c"}
CELLS = {
    "lstm": ("LSTM", {}, LSTM_STATES),
    "gru": ("GRU", {}, {"h0": "Y_h"}),
    "gru, linear before reset": ("GRU", {"linear_before_reset": 1}, {"h0": "Y_h"}),
}
BATCH = 3


def _model(cell: str, length: int, **options: object) -> tuple[RecurrentModel, dict[str, str]]:
    operator, attributes, states = CELLS[cell]
    outputs = ["Y", *states.values()]
    return RecurrentModel(operator, length, states=True, outputs=outputs, attributes=attributes, **options), states


@pytest.fixture
def device():
    with openmxu.open_device("interpreter", CONFIG) as opened:
        yield opened


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS)
def test_states_persist_between_executions(cell: str, length: int, device: openmxu.Device):
    """Results equal those of a program that returns its states to the host and gets them back as inputs."""
    model, states = _model(cell, length)
    program = openmxu.compile(model.model(), CONFIG, batch=BATCH, states=states)
    assert [spec.name for spec in program.inputs] == ["x"]
    assert [spec.name for spec in program.outputs] == ["Y"]
    plain = openmxu.compile(model.model(), CONFIG, batch=BATCH)
    session = program.session(device)
    current = {name: np.zeros((1, BATCH, model.units), np.float32) for name in states}
    for seed in range(4):
        x = model.values(BATCH, seed)["x"]
        result = session.run(x)["Y"]
        with openmxu.open_device("interpreter", CONFIG) as other:
            expected = plain.run(other, {"x": x, **current})
        current = {name: expected[output] for name, output in states.items()}
        assert np.array_equal(result, expected["Y"])
        kept = session.states()
        assert kept.keys() == current.keys()
        assert all(np.array_equal(kept[name], current[name]) for name in current)


def test_pieces_equal_the_whole_sequence(device: openmxu.Device):
    """A sequence in three pieces of two steps gives the same result as in one piece of six."""
    whole, _ = _model("gru", 6)
    piece, states = _model("gru", 2)
    x = whole.values(BATCH)["x"]
    zeros = {"h0": np.zeros((1, BATCH, 6), np.float32)}
    expected = openmxu.compile(whole.model(), CONFIG, batch=BATCH).run(device, {"x": x, **zeros})["Y"]
    session = openmxu.compile(piece.model(), CONFIG, batch=BATCH, states=states).session(device)
    results = [session.run(np.ascontiguousarray(x[:, start : start + 2]))["Y"] for start in range(0, 6, 2)]
    assert np.array_equal(np.concatenate(results), expected)


@pytest.mark.parametrize("cell", CELLS)
def test_reset(cell: str, device: openmxu.Device):
    model, states = _model(cell, 2)
    session = openmxu.compile(model.model(), CONFIG, batch=BATCH, states=states).session(device)
    x = model.values(BATCH)["x"]
    first = session.run(x)["Y"]
    middle = session.states()
    second = session.run(x)["Y"]
    assert not np.array_equal(first, second)
    session.reset()
    assert np.array_equal(session.run(x)["Y"], first)
    session.run(x)
    session.reset(middle)
    assert np.array_equal(session.run(x)["Y"], second)


def test_saved_states_survive_other_programs(device: openmxu.Device):
    model, states = _model("lstm", 2)
    program = openmxu.compile(model.model(), CONFIG, batch=BATCH, states=states)
    session, x = program.session(device), model.values(BATCH)["x"]
    session.run(x)
    saved = session.states()
    expected = session.run(x)["Y"]
    program.run(device, x)
    session.reset(saved)
    assert np.array_equal(session.run(x)["Y"], expected)


def test_run_starts_with_zero_states(device: openmxu.Device):
    """Without a session every execution starts with zero states, including the second one of a large batch."""
    model, states = _model("lstm", 2)
    program = openmxu.compile(model.model(), CONFIG, batch=2, states=states)
    x = model.values(5)["x"]
    results = program.run(device, x)["Y"]
    for element in range(5):
        assert np.array_equal(results[:, :, element], program.run(device, x[element : element + 1])["Y"][:, :, 0])


def test_two_parts_of_a_batch(device: openmxu.Device):
    """States of a batch that is divided into parts are transferred in the right order."""
    config = openmxu.Config.for_size(4, accumulator_rows=64, unified_buffer_rows=4096)
    model, states = _model("gru", 2)
    program = openmxu.compile(model.model(), config, batch=20, states=states)
    assert len(program.states[0].parts) > 1
    with openmxu.open_device("interpreter", config) as opened:
        session, values = program.session(opened), model.values(20)
        session.reset({"h0": values["h0"]})
        given = session.states()["h0"]
        assert np.abs(given - values["h0"]).max() < 1 / 127 / 256
        expected = openmxu.compile(model.model(), config, batch=20).run(opened, values)
        session.reset({"h0": values["h0"]})
        assert np.array_equal(session.run(values["x"])["Y"], expected["Y"])
        assert np.array_equal(session.states()["h0"], expected["Y_h"])


def test_file_round_trip(device: openmxu.Device, tmp_path):
    model, states = _model("lstm", 2)
    saved = openmxu.compile(model.model(), CONFIG, batch=BATCH, states=states)
    saved.save(tmp_path / "cell.mxu")
    loaded = openmxu.Program.load(tmp_path / "cell.mxu")
    assert loaded.states == saved.states
    x = model.values(BATCH)["x"]
    assert np.array_equal(loaded.session(device).run(x)["Y"], saved.session(device).run(x)["Y"])


def test_refusals(device: openmxu.Device):
    model, states = _model("lstm", 2)
    program = openmxu.compile(model.model(), CONFIG, batch=BATCH, states=states)
    session, x = program.session(device), model.values(4)["x"]
    with pytest.raises(openmxu.InputError, match="states are there for 3 batch elements, but the inputs have 4"):
        session.run(x)
    with pytest.raises(openmxu.InputError, match="expected states named h0, c0; found h1"):
        session.reset({"h1": x})
    with pytest.raises(
        openmxu.InputError, match=r"state 'h0' must be float32 of shape \(1, batch, 6\) with a batch of 3"
    ):
        session.reset({"h0": np.zeros((1, 4, 6), np.float32)})
    with pytest.raises(openmxu.InputError, match=r"state 'h0' must be .*, not list"):
        session.reset({"h0": [0.0]})
    state = np.zeros((1, BATCH, 6), np.float32)
    state[0, 1, 2] = -np.inf
    with pytest.raises(openmxu.InputError, match=r"^state 'h0' must be finite, but \[0, 1, 2\] is -inf: 1 of 18"):
        session.reset({"h0": state})
    plain = openmxu.compile(model.model(), CONFIG, batch=BATCH)
    with pytest.raises(ValueError, match=r"the program keeps no state; openmxu\.compile makes one that does"):
        plain.session(device)
    other = CONFIG.replace(accumulator_rows=256)
    with (
        openmxu.open_device("interpreter", other) as opened,
        pytest.raises(openmxu.InputError, match="was compiled for"),
    ):
        program.session(opened)


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ({"x": "Y_h"}, "no LSTM or GRU begins with the input 'x': it cannot be a state"),
        ({"h0": "Y_c"}, "node 'cell': the output 'Y_c' is not what it makes of 'h0'; it cannot be its next state"),
        ({"h0": "nothing"}, "node 'cell': the output 'nothing' is not what it makes of 'h0'"),
    ],
    ids=str,
)
def test_invalid_states(states: dict[str, str], reason: str):
    model, _ = _model("lstm", 2)
    with pytest.raises(ModelError, match=reason):
        openmxu.compile(model.model(), CONFIG, states=states)


def test_a_model_with_states_only():
    model = RecurrentModel("GRU", 2, states=True, outputs=["Y_h"])
    with pytest.raises(ModelError, match="a model must have other inputs and outputs beside its states"):
        openmxu.compile(model.model(), CONFIG, states={"h0": "Y_h"})


def test_states_of_a_batch_that_is_too_large():
    model, states = _model("lstm", 2)
    with pytest.raises(CapacityError, match=r"node 'cell': .* but a batch of 60 whose state it keeps needs \d+"):
        openmxu.compile(model.model(), CONFIG, batch=60, states=states)
    with pytest.raises(
        CapacityError, match=r"unified_buffer_rows is 1024, but the states of a batch of 200 alone need"
    ):
        openmxu.compile(model.model(), CONFIG, batch=200, states=states)
