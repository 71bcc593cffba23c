"""A profile of the simulated RTL: its layers add up to what the device counted, in every kind of cycle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import openmxu
from openmxu.compiler import compile_network
from openmxu.profiling import take_profile
from tests.compiler.models.plane_networks import random_planes
from tests.profiling.profiles import digits_profile

CONFIG = openmxu.Config()
KINDS = ("array_active", "weight_stall", "weight_shift", "non_matrix")
SLOW = {"memory_latency": 30, "host_rate": Fraction(9, 2), "weight_rate": 3}


@pytest.mark.parametrize("memories", [{}, SLOW], ids=["default", "slow"])
@pytest.mark.parametrize("what", ["digits", "planes"])
def test_layers_add_up_to_the_counters(what, memories):
    if what == "digits":
        program = digits_profile().program
    else:
        program = compile_network(random_planes(np.random.default_rng(3), (9, 8, 10), 5), CONFIG, 2)
    inputs = {spec.name: np.zeros(spec.full_shape(program.batch), spec.dtype) for spec in program.inputs}
    with openmxu.open_device("verilator", CONFIG, **memories) as device:
        # Memories keep their contents, and their banks' traffic, from a run to the next one.
        for _ in range(2):
            profile = take_profile(program, device, inputs, model="", device_name="verilator", **memories)
            assert profile.timeline.source == profile.report.source == "verilator"
            assert profile.counted == profile.counters["cycles"] == profile.timeline.cycles
            assert profile.difference == 0
            for kind in (*KINDS, "raw_stall", "input_stall"):
                found = [layer.kinds[kind] for layer in profile.report.layers]
                assert sum(found) == profile.counters[kind], kind
                assert min(found) >= 0, kind
            for layer in profile.report.layers:
                assert sum(layer.kinds[kind] for kind in KINDS) == layer.cycles
            assert profile.occupancy.peak > 0
