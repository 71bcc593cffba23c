"""Random programs are legal, reproducible, and go where hardware breaks."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Instruction, Opcode, OutputFormat, Register
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.lockstep import cases, configurations, generate
from openmxu.sim.lockstep.case import HALT
from openmxu.sim.lockstep.faulting import FAULT_CODES, faulting_instructions

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


def test_the_seed_decides():
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


def test_faults_come_when_asked_for():
    found = Counter()
    for seed in range(150):
        case = generate(ALL_CONFIGURATIONS[seed % len(ALL_CONFIGURATIONS)], seed, 10, fault_probability=1.0)
        ((_, code),) = case.faults()
        found[code] += 1
        assert [HALT in execution for execution in case.executions()] == [True, True]
    assert set(found) == set(FAULT_CODES)


@pytest.mark.parametrize("code", FAULT_CODES, ids=lambda code: code.name)
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


def test_every_implemented_instruction_register_and_output_occurs(many):
    opcodes, registers, outputs, halts = Counter(), Counter(), Counter(), Counter()
    for case in many:
        legal = [instruction for instruction, fault in case.outcomes() if fault is FaultCode.NONE]
        opcodes.update(instruction.format.opcode for instruction in legal)
        registers.update(i["register"] for i in legal if i.format.opcode is Opcode.SET_CONFIGURATION)
        outputs.update(i["output"] for i in legal if i.format.opcode is Opcode.ACTIVATE)
        halts[legal.count(HALT) > 1] += 1
    assert set(opcodes) == set(Opcode) - {Opcode.CONVOLVE}
    assert set(registers) == {register.number for register in REGISTERS if register.implemented}
    assert set(outputs) == {OutputFormat.BYTE, OutputFormat.INT32}
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


def unified_buffer_range(instruction: Instruction) -> tuple[range, bool] | None:
    """The unified buffer rows of an instruction, and whether it writes them."""
    rows = {
        Opcode.READ_HOST_MEMORY: (1, True),
        Opcode.READ_HOST_MEMORY_ALTERNATE: (1, True),
        Opcode.WRITE_HOST_MEMORY: (1, False),
        Opcode.WRITE_HOST_MEMORY_ALTERNATE: (1, False),
        Opcode.MATRIX_MULTIPLY: (1, False),
        Opcode.ACTIVATE: (1, True),
    }
    opcode = instruction.format.opcode
    if opcode not in rows:
        return None
    factor, writes = rows[opcode]
    if opcode is Opcode.ACTIVATE and instruction["output"] == OutputFormat.INT32:
        factor = 4
    first = instruction["unified_buffer"]
    return range(first, first + factor * instruction["rows"]), writes


def test_units_meet_in_the_unified_buffer(many):
    """Each kind of hazard is frequent between neighbours of different kinds; both ends of the memory are reached."""
    hazards, ends = Counter(), Counter()
    for case in many:
        ranges = [
            (instruction.format.opcode, *found)
            for instruction, fault in case.outcomes()
            if fault is FaultCode.NONE and (found := unified_buffer_range(instruction))
        ]
        for (before, rows, writes), (after, later_rows, later_writes) in itertools.pairwise(ranges):
            overlap = range(max(rows.start, later_rows.start), min(rows.stop, later_rows.stop))
            if before is not after and overlap:
                hazards["RW"[writes] + "RW"[later_writes]] += 1
            ends["first"] += rows.start == 0
            ends["last"] += rows.stop == case.config.unified_buffer_rows
    assert min(hazards[kind] for kind in ("WR", "RW", "WW")) > 100
    assert min(ends["first"], ends["last"]) > 200


class _OutputCount(Interpreter):
    """Counts the byte outputs that lie at a limit of OUTPUT_FORMAT or at its zero point, and the others."""

    edge = inner = 0

    def _activate(self, values: dict[str, int]) -> None:
        super()._activate(values)
        if values["output"] != OutputFormat.BYTE:
            return
        output_format = self._checker.register(Register.OUTPUT_FORMAT)
        written = self._unified_buffer_rows(values, values["rows"])
        at_edge = np.isin(written, [value & 0xFF for value in output_format.values()])
        self.edge += int(at_edge.sum())
        self.inner += int((~at_edge).sum())


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
