"""Timelines recorded from the RTL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.arch import Config
from openmxu.arch.events import Counter
from openmxu.arch.isa import Unit
from openmxu.compiler import compile_network, conv_network
from openmxu.device import DeviceError
from openmxu.profiling import predicted_timeline, recorded_timeline
from openmxu.profiling.timeline import STALLS
from openmxu.program import Program
from openmxu.sim.verilated import VerilatedDevice
from tests.sim import stand_in

CONFIG = Config.for_size(4, profile="full")


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_network(conv_network(3, 8, 8, 8, kernel=3, stride=1, pool=2), CONFIG, 2)


@pytest.fixture(scope="module")
def device() -> Iterator[VerilatedDevice]:
    with VerilatedDevice(CONFIG) as device:
        yield device


def images(program: Program, count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *program.inputs[0].shape), np.uint8)


def test_as_the_cycle_model_predicts(program: Program, device: VerilatedDevice) -> None:
    """Without stalls at random the cycle model predicts every cycle of an instruction to within three."""
    device.clear_counters()
    recorded = recorded_timeline(program, device, images(program, 2))
    predicted = predicted_timeline(program)
    assert recorded.cycles == device.counters[Counter.CYCLES]
    assert len(recorded.unit) == len(program.instructions)
    assert recorded.unit.tolist() == predicted.unit.tolist()
    assert recorded.layer.tolist() == predicted.layer.tolist()
    for name in ("accepted", "begun", "done"):
        difference = getattr(recorded, name) - getattr(predicted, name)
        assert np.abs(difference).max() <= 3, name
        assert (difference == 0).mean() > 0.9, name
    for name in STALLS:
        assert np.abs(recorded.stalls[name] - predicted.stalls[name]).max() <= 3, name


def test_with_stalls(program: Program) -> None:
    with VerilatedDevice(CONFIG, stall_probability=0.9, seed=3, weight_rate=1) as device:
        # Only the first batch is run.
        recorded = recorded_timeline(program, device, images(program, 5))
        counters = device.counters
    assert recorded.cycles == counters[Counter.CYCLES] > predicted_timeline(program).cycles
    assert recorded.done.max() == recorded.cycles
    assert (recorded.accepted <= recorded.begun).all()
    assert (recorded.begun <= recorded.done).all()
    for name in STALLS:
        assert recorded.stalls[name].sum() == counters[Counter[name.upper()]], name
        assert not recorded.stalls[name][recorded.unit != Unit.MATRIX].any()


def test_no_recording_without_a_block(program: Program, device: VerilatedDevice) -> None:
    device.load(program)
    with device.recording() as recordings:
        device.run(images(program, 3))
    device.run(images(program, 1))
    assert len(recordings) == 2


def test_other_devices_have_nothing_to_record(program: Program) -> None:
    with openmxu.open_device("interpreter", CONFIG) as device, pytest.raises(TypeError, match="not on a Interpreter"):
        recorded_timeline(program, device, images(program, 1))


def test_other_designs_have_nothing_to_record() -> None:
    with (
        VerilatedDevice(stand_in.CONFIG, design=stand_in.DESIGN) as device,
        pytest.raises(DeviceError, match="has no signals that are recorded"),
        device.recording(),
    ):
        pass
