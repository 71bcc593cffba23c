"""The modelled device: the interpreter's results, and the cycle model's cycles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import openmxu
from openmxu.arch.events import Counter
from openmxu.arch.isa import Instruction, format_named
from openmxu.compiler import compile_network, conv_input, conv_network, gemm, gemm_input
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.cycle_model import predict
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.modelled import ModelledDevice

CONFIG = openmxu.Config(size=4)
MEMORIES = {"memory_latency": 30, "host_rate": Fraction(5, 2), "weight_rate": 1}
_NOTHING = np.zeros(0, np.uint8)
_HALT = format_named("Halt")()


@pytest.mark.parametrize("memories", [{}, MEMORIES], ids=["default", "slow"])
def test_results_of_the_interpreter_and_cycles_of_the_report(memories):
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=8)
    images = digits_test_split()[0][:20]
    with Interpreter(CONFIG) as device:
        expected = program.run(device, images)
    with openmxu.open_device("model", CONFIG, **memories) as device:
        assert set(device.counters.values()) == {0}
        results = program.run(device, images)
        counters = device.counters
    assert set(results) == set(expected)
    for name, result in results.items():
        np.testing.assert_array_equal(result, expected[name], strict=True)
    total = openmxu.report(program, **memories).total
    executions = program.executions(len(images))
    assert executions == 3
    assert counters[Counter.CYCLES] == executions * total.cycles
    for kind, cycles in total.kinds.items():
        assert counters[Counter[kind.upper()]] == executions * cycles, kind
    for name in ("host_read_bytes", "host_write_bytes", "weight_bytes"):
        assert counters[Counter[name.upper()]] == executions * getattr(total, name), name


def test_counters_are_cleared():
    program = gemm(3, 4, 5, CONFIG)
    with ModelledDevice(CONFIG) as device:
        program.run(device, gemm_input(3, 4))
        once = device.counters
        device.clear_counters()
        assert set(device.counters.values()) == {0}
        device.run(gemm_input(3, 4))
        device.run(gemm_input(3, 4))
        assert device.counters == {counter: 2 * count for counter, count in once.items()}
        device.scrub()
        assert set(device.counters.values()) == {0}


def test_programs_that_run_back_to_back():
    program = [format_named("Read_Host_Memory")(rows=3), _HALT]
    with ModelledDevice(CONFIG) as device:
        device.execute([*program, *program], np.zeros(64, np.uint8), _NOTHING)
        assert device.counters[Counter.CYCLES] == predict([*program, *program], CONFIG).cycles


def test_a_fault_counts_nothing():
    with ModelledDevice(CONFIG) as device:
        with pytest.raises(openmxu.DeviceFault):
            device.execute([Instruction(0xEE), _HALT], _NOTHING, _NOTHING)
        assert set(device.counters.values()) == {0}


@pytest.mark.parametrize(
    ("config", "memories", "message"),
    [
        (CONFIG, {"memory_latency": 0}, "memory_latency must be at least 1 cycle, not 0"),
        (CONFIG, {"weight_rate": -1}, "weight_rate must be positive, not -1"),
        (openmxu.Config.preset("icebreaker"), {}, "does not know cores of the profile lite"),
    ],
)
def test_refusals(config, memories, message):
    with pytest.raises(ValueError, match=message):
        ModelledDevice(config, **memories)


def test_convolution():
    network = conv_network(5, 7, 6, 6, kernel=3, stride=1, pool=2)
    program, values = compile_network(network, CONFIG, 1), conv_input(5, 6, 6)
    with Interpreter(CONFIG) as reference, ModelledDevice(CONFIG) as device:
        expected, results = program.run(reference, values), program.run(device, values)
        assert device.counters[Counter.CYCLES] == openmxu.report(program).total.cycles
    assert all((results[name] == expected[name]).all() for name in expected)
