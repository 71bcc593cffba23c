"""Recurrent cells on the simulated RTL: results equal those of the definition, and states persist between runs."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu.compiler import compile_network, evaluate
from tests.compiler.models.random_cells import KINDS, cell_network, random_cell
from tests.compiler.models.recurrent_models import RecurrentModel

CONFIG = openmxu.Config.preset("tiny")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def device():
    with openmxu.open_device("verilator", CONFIG, stall_probability=0.1, seed=3) as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_rtl_equals_definition(kind: str, device: openmxu.Device):
    random = np.random.default_rng(KINDS.index(kind))
    network = cell_network(random_cell(random, kind, 5, 6), 5, 4)
    source = network.inputs[0].host
    limits = np.iinfo(source.dtype)
    values = random.integers(limits.min, limits.max + 1, (3, *source.shape)).astype(source.dtype)
    expected = evaluate(network, values)
    results = compile_network(network, CONFIG, 3).run(device, values)
    assert {name: int((results[name] != expected[name]).sum()) for name in expected} == {"y": 0, "y_h": 0}


def test_session(device: openmxu.Device):
    model = RecurrentModel("GRU", 1, states=True, outputs=["Y", "Y_h"])
    program = openmxu.compile(model.model(), CONFIG, batch=2, states={"h0": "Y_h"})
    with openmxu.open_device("interpreter", CONFIG) as interpreter:
        sessions = program.session(device), program.session(interpreter)
        for seed in range(3):
            x = model.values(2, seed)["x"]
            first, second = (session.run(x)["Y"] for session in sessions)
            assert np.array_equal(first, second)
        assert np.array_equal(sessions[0].states()["h0"], sessions[1].states()["h0"])
