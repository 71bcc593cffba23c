"""Traces obey the rules of Chrome's format."""

from __future__ import annotations

import json

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Unit
from openmxu.compiler import compile_network, conv_network
from openmxu.profiling import predicted_timeline, recorded_timeline
from openmxu.profiling.timeline import STALLS
from openmxu.profiling.trace import chrome_trace
from openmxu.sim.verilated import VerilatedDevice

CONFIG = Config.for_size(4, profile="full")


@pytest.fixture(scope="module")
def traced() -> tuple:
    """A program, its recorded and its predicted timeline, and their trace as it comes back from a file."""
    program = compile_network(conv_network(3, 8, 8, 8, kernel=3, stride=1, pool=2), CONFIG, 2)
    inputs = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8), np.uint8)
    with VerilatedDevice(CONFIG, weight_rate=1, memory_latency=60) as device:
        recorded = recorded_timeline(program, device, inputs)
    predicted = predicted_timeline(program, weight_rate=1, memory_latency=60)
    return program, (recorded, predicted), json.loads(json.dumps(chrome_trace(program, (recorded, predicted))))


def test_events_have_the_keys_of_their_phase(traced: tuple) -> None:
    _, _, trace = traced
    assert isinstance(trace["traceEvents"], list)
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            argument = event["args"]["sort_index" if event["name"].endswith("sort_index") else "name"]
            assert isinstance(argument, int if event["name"].endswith("sort_index") else str)
        else:
            assert event["ph"] == "X"
            assert isinstance(event["cat"], str)
            assert isinstance(event["ts"], int)
            assert isinstance(event["dur"], int)
            assert event["ts"] >= 0
            assert event["dur"] >= 0


def test_slices_of_a_thread_do_not_overlap(traced: tuple) -> None:
    ends: dict[int, int] = {}
    slices = [event for event in traced[2]["traceEvents"] if event["ph"] == "X"]
    named = [event["tid"] for event in traced[2]["traceEvents"] if event["name"] == "thread_name"]
    assert len(set(named)) == len(named)  # over both processes, and none is 0: Perfetto would mix their slices
    assert 0 not in named
    for event in slices:  # of a thread they come in order, which is the program's
        thread = event["tid"]
        assert thread in named
        assert event["ts"] >= ends.get(thread, 0), event
        ends[thread] = event["ts"] + event["dur"]


def test_every_instruction_has_a_slice(traced: tuple) -> None:
    program, timelines, trace = traced
    for process, timeline in enumerate(timelines, 1):
        slices = [
            event for event in trace["traceEvents"] if event["pid"] == process and event.get("cat") == "instruction"
        ]
        assert [event["args"]["index"] for event in slices] == list(range(len(program.instructions)))
        assert [event["name"] for event in slices] == [instruction.name for instruction in program.instructions]
        assert [event["args"]["done"] for event in slices] == timeline.done.tolist()
        assert slices[-1]["ts"] + slices[-1]["dur"] == timeline.cycles
        layers = {event["args"]["layer"] for event in slices if "layer" in event["args"]}
        assert layers == {layer.name for layer in program.layers}


def test_waits_have_the_cycles_of_the_counters(traced: tuple) -> None:
    _, timelines, trace = traced
    for process, timeline in enumerate(timelines, 1):
        waits = [event for event in trace["traceEvents"] if event["pid"] == process and event.get("cat") == "stall"]
        total = sum(int(timeline.stalls[name].sum()) for name in STALLS)
        assert sum(event["args"]["cycles"] for event in waits) == total > 0
        assert {timeline.unit[event["args"]["index"]] for event in waits} == {Unit.MATRIX}
