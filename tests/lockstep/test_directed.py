"""Directed cases, which random programs seldom reach, on the Verilated device and the interpreter."""

from __future__ import annotations

import pytest

from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.boundary_cases import check_most_tiles, check_numbers_of_tiles, long_windows
from tb.directed.checks.addresses import check_high_addresses, check_registers
from tb.directed.checks.progress import check_progress
from tb.directed.checks.resets import check_resets
from tb.directed.checks.slots import check_slots
from tb.directed.checks.wide import check_strides
from tb.directed.directed_cases import DIRECTED, directed, single_bits
from tb.lockstep import run_case

CONFIGURATIONS = pytest.mark.parametrize("config", DIRECTED, ids=lambda config: f"S{config.size}")

# The smallest and the largest configuration cover all kinds of rows, banks and queues; the other one is slow.
ENDS = pytest.mark.parametrize(
    "config",
    [pytest.param(config, marks=pytest.mark.slow if config is DIRECTED[1] else ()) for config in DIRECTED],
    ids=lambda config: f"S{config.size}",
)


def run(case):
    with VerilatedDevice(case.config) as device:
        return run_case(case, device, Interpreter(case.config))


@CONFIGURATIONS
def test_every_bit_of_every_instruction(config):
    cases = list(single_bits(config, 1))
    opcodes = {instruction.format.opcode for case in cases for instruction in case.instructions if instruction.format}
    assert opcodes == set(Opcode)
    faults = {fault for case in cases for _, fault in case.faults()}
    assert faults >= {FaultCode.UNKNOWN_OPCODE, FaultCode.RESERVED_BITS, FaultCode.ILLEGAL_VALUE, FaultCode.HOST_WINDOW}


@ENDS
def test_directed_cases(config):
    for name, case in directed(config, 1):
        assert run(case) is None, name


@CONFIGURATIONS
def test_memories_at_high_addresses(config):
    check_high_addresses(config, {})


@CONFIGURATIONS
def test_numbers_of_tiles(config):
    check_numbers_of_tiles(config, {})


@pytest.mark.slow
@CONFIGURATIONS
def test_most_tiles(config):
    check_most_tiles(config, {})


@pytest.mark.slow
@CONFIGURATIONS
def test_long_windows(config):
    assert run(long_windows(config, 1)) is None


@CONFIGURATIONS
def test_rows_far_apart_in_host_memory(config):
    check_strides(config, {})


@ENDS
def test_waiting_does_not_depend_on_slots_and_addresses(config):
    check_slots(config, {})


@CONFIGURATIONS
def test_management_registers(config):
    check_registers(config, {})


@CONFIGURATIONS
def test_outputs_for_a_watchdog(config):
    check_progress(config, {})


@CONFIGURATIONS
def test_resets_in_the_middle_of_a_program(config):
    check_resets(config, {})
