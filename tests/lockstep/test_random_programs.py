"""Random programs are legal and reproducible, and cover conditions in which errors are likely."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.faults import CORE_FAULTS, FaultCode
from openmxu.arch.isa import Opcode, OutputFormat, Pooling, Register
from openmxu.sim.interpreter import Interpreter
from tb.lockstep import cases, configurations, generate
from tb.lockstep.case import HALT
from tb.lockstep.programs.faulting import faulting_instructions
from tb.lockstep.programs.steps import steps

ALL_CONFIGURATIONS = [config for size in (2, 4, 8, 16) for config in configurations(size)]


@pytest.fixture(scope="module")
def many():
    return list(cases(100, 300, ALL_CONFIGURATIONS))


def test_programs_are_legal_without_fault_probability():
    for seed, config in enumerate(ALL_CONFIGURATIONS * 4):
        case = generate(config, seed, 60)
        assert case.faults() == []
        assert case.instructions[-1] == HALT
        assert case.executions() == [case.instructions]
        assert len(case.instructions) >= 60


@pytest.mark.parametrize("size", [2, 32])
def test_every_size_has_programs(size):
    assert generate(Config.for_size(size), 1, 30).faults() == []


def test_the_seed_determines_the_program():
    config = ALL_CONFIGURATIONS[0]
    first, again, other = (generate(config, seed, 40, fault_probability=0.5) for seed in (3, 3, 4))
    assert first.instructions == again.instructions
    np.testing.assert_array_equal(first.host_memory, again.host_memory)
    np.testing.assert_array_equal(first.weight_memory, again.weight_memory)
    assert first.instructions != other.instructions


def test_a_case_is_found_again_by_its_seed_and_configuration(many):
    for case in many[5:9]:
        (again,) = cases(case.seed, 1, [case.config])
        assert again.instructions == case.instructions


def test_requested_faults_occur():
    found = Counter()
    for seed in range(200):
        case = generate(ALL_CONFIGURATIONS[seed % len(ALL_CONFIGURATIONS)], seed, 10, fault_probability=1.0)
        ((_, code),) = case.faults()
        found[code] += 1
        assert [HALT in execution for execution in case.executions()] == [True, True]
    assert set(found) == set(CORE_FAULTS)


@pytest.mark.parametrize("code", CORE_FAULTS, ids=lambda code: code.name)
def test_each_fault_can_be_raised_in_any_state(code):
    words = set()
    for seed, config in enumerate(ALL_CONFIGURATIONS * 3):
        case = generate(config, seed, seed % 12)
        checker = case.checker()
        for instruction in case.instructions[:-1]:
            assert checker.check(instruction) is FaultCode.NONE
        *before, last = faulting_instructions(code, checker, np.random.default_rng(seed))
        assert [checker.check(instruction) for instruction in before] == [FaultCode.NONE] * len(before)
        assert checker.check(last) is code
        words.add(last)
    assert len(words) > 1 or code is FaultCode.WEIGHT_QUEUE_FULL


def test_every_instruction_and_register_is_frequent(many):
    opcodes, registers, halts = Counter(), Counter(), Counter()
    for case in many:
        legal = [instruction for instruction, fault in case.outcomes() if fault is FaultCode.NONE]
        opcodes.update(instruction.format.opcode for instruction in legal)
        registers.update(i["register"] for i in legal if i.format.opcode is Opcode.SET_CONFIGURATION)
        halts[legal.count(HALT) > 1] += 1
    assert set(opcodes) == set(Opcode)
    assert set(registers) == set(Register)
    assert min(opcodes.values()) > 50
    assert min(registers.values()) > 50
    assert min(halts.values()) > 50


def test_the_weight_queue_is_used_to_its_limits(many):
    full, left_over = 0, 0
    for case in many:
        checker = case.checker()
        for instruction in case.instructions:
            left_over += instruction == HALT and bool(checker.outstanding)
            if checker.check(instruction) is not FaultCode.NONE:
                break
            full += len(checker.outstanding) == case.config.weight_queue_depth
    assert full > 50
    assert left_over > 50


def test_programs_are_short_on_every_device(many):
    """Limits on rows through the array and positions through the activation unit keep simulations short."""
    for case in many:
        work = 0
        for step in steps(case):
            values = step.values
            if step.fault is not FaultCode.NONE or step.opcode not in (Opcode.MATRIX_MULTIPLY, Opcode.ACTIVATE):
                continue
            work += values["rows"] * (1 + values.get("wide_input", 0)) * (1 + values.get("wide_weights", 0))
            if step.opcode is Opcode.ACTIVATE and values["pooling"] != Pooling.NONE:
                window = step.register(Register.POOLING_WINDOW)
                work += values["rows"] * window["height"] * window["width"] * case.config.column_groups
        assert work < 50_000


class _OutputCount(Interpreter):
    """Counts byte outputs at a limit of OUTPUT_FORMAT or at its zero point, and all others."""

    edge = inner = 0

    def _step(self, translator, instruction):
        values, step = instruction.values, super()._step(translator, instruction)
        is_byte = instruction.opcode is Opcode.ACTIVATE and values["output"] == OutputFormat.BYTE
        if not is_byte or values["table"]:
            return step
        limits = [value & 0xFF for value in self._checker.register(Register.OUTPUT_FORMAT).values()]
        results = self.unified_buffer[values["unified_buffer"] :][: values["rows"]]

        def counted():
            step()
            at_edge = np.isin(results, limits)
            self.edge += int(at_edge.sum())
            self.inner += int((~at_edge).sum())

        return counted


def test_outputs_are_not_all_saturated(many):
    edge = inner = 0
    for case in many:
        if not case.faults():
            device = _OutputCount(case.config)
            device.execute(case.instructions, case.host_memory.copy(), case.weight_memory)
            edge += device.edge
            inner += device.inner
    assert inner > 0.2 * (edge + inner)
    assert edge > 0.2 * (edge + inner)
