"""The recurrent example networks: close to their float models, with equal results on the RTL and the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from examples.char_lstm.characters import ALPHABET, decode, encode, learned_text, unseen_text
from examples.char_lstm.generate import written
from examples.char_lstm.network import NETWORK as CHARACTERS
from examples.recurrent_network import RecurrentNetwork
from examples.series_gru.network import NETWORK as SERIES
from examples.text_lstm.network import NETWORK as TEXTS
from openmxu.arch.events import Counter
from openmxu.sim.cycle_model import predict
from scripts.recurrent_networks import LARGEST_DIFFERENCE, classes


def _check(network: RecurrentNetwork, size: int, sequences: np.ndarray) -> None:
    """Check a network on whole sequences or on their beginnings."""
    with openmxu.open_device("interpreter", openmxu.Config.for_size(size)) as device:
        found = network.run(device, sequences)
    wanted = network.run_float(sequences)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= LARGEST_DIFFERENCE
    assert np.ptp(wanted, axis=0).max() > 0.2
    assert (classes(found) == classes(wanted)).mean() > 0.9


def test_texts():
    _check(TEXTS, 32, TEXTS.sequences(12))


def test_characters():
    _check(CHARACTERS, 64, CHARACTERS.sequences(12)[:, :30])


def test_series():
    _check(SERIES, 128, SERIES.sequences(4)[:, :48])


def test_whole_series_in_one_piece():
    """Without states between executions, two pieces are one program."""
    sequences = SERIES.sequences(2, seed=1)[:, : 2 * SERIES.piece]
    config = openmxu.Config.for_size(256)
    with openmxu.open_device("interpreter", config) as device:
        in_pieces = SERIES.run(device, sequences)
        program = openmxu.compile(SERIES.model(2 * SERIES.piece), config, batch=2)
        state = np.zeros((1, 2, 512), np.float32)
        whole = program.run(device, {"signals": sequences, "state": state})
    assert np.array_equal(whole["alarms"], in_pieces)


def test_characters_on_the_rtl():
    """Two characters in sequence, with states kept in between, and a text written by each of both devices."""
    config = openmxu.Config()
    sequences = CHARACTERS.sequences(2)[:, :2]
    texts = []
    program = openmxu.compile(CHARACTERS.model(), config, batch=1, states=CHARACTERS.states)
    results = []
    for name in ("verilator", "interpreter"):
        with openmxu.open_device(name, config) as device:
            results.append(CHARACTERS.run(device, sequences))
            texts.append("".join(written(program.session(device), "Th", 3, temperature=0, seed=0)))
    assert np.array_equal(*results)
    assert texts[0] == texts[1]


def test_predicted_cycles():
    """The cycle model covers the features of recurrent cells: wide rows, tables, weights loaded in every step."""
    config = openmxu.Config()
    program = openmxu.compile(CHARACTERS.model(), config, batch=8)
    with openmxu.open_device("verilator", config) as device:
        program.run(device, CHARACTERS.inputs(8))
        measured = device.counters[Counter.CYCLES]
    assert predict(program.instructions, config).cycles == pytest.approx(measured, rel=0.02)


def test_characters_continue_a_learned_text():
    config = openmxu.Config.for_size(128)
    program = openmxu.compile(CHARACTERS.model(), config, batch=1, states=CHARACTERS.states)
    with openmxu.open_device("interpreter", config) as device:
        text = "".join(written(program.session(device), "The unified", 12, temperature=0, seed=0))
        again = "".join(written(program.session(device), "The unified", 12, temperature=0, seed=0))
    assert text == again
    assert text.startswith(" buffer")


def test_alphabet():
    assert len(ALPHABET) == len(set(ALPHABET)) == 96
    for text in (learned_text(), unseen_text()):
        assert decode(encode(text)) == text


@pytest.mark.parametrize("network", [TEXTS, CHARACTERS, SERIES], ids=["texts", "characters", "series"])
def test_sequences_are_seeded(network: RecurrentNetwork):
    first, again, other = network.sequences(2), network.sequences(2), network.sequences(2, seed=1)
    assert first.shape[:2] == (2, network.length)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
