"""The program with which a core clears its memories, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu.arch.config import Config
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode
from openmxu.arch.legality import LegalityChecker
from openmxu.arch.scrub import scrub_program
from openmxu.sim.interpreter import Interpreter

CONFIGS = {
    "default": Config(),
    "large buffer": Config(size=4, unified_buffer_rows=300, accumulator_rows=32, parameter_sets=50),
    "small buffer": Config(size=2, unified_buffer_rows=20, accumulator_rows=64, parameter_sets=7),
    "no room for a set": Config(size=4, unified_buffer_rows=6, accumulator_rows=4, parameter_sets=3),
    "many sets": Config(size=2, unified_buffer_rows=1 << 20, accumulator_rows=1 << 16, parameter_sets=1 << 16),
    "S32": Config.for_size(32),
}


class ScrubbedByProgram(Interpreter):
    """Has a tile in the array, with random weights, as the program requires."""

    def fill(self, random: np.random.Generator) -> None:
        for memory in (self.unified_buffer, self.accumulators, self.biases, self.tables, self._memories.tile):
            memory[...] = random.integers(1, 100, memory.shape)
        self.scales[...] = random.choice(np.float32([np.nan, np.inf, -np.inf, -3e38, 1e-45, 0.7]), self.scales.shape)
        self._checker.tile_in_array = True


@pytest.mark.parametrize("name", CONFIGS)
def test_program_clears_all_memories(name: str) -> None:
    config = CONFIGS[name]
    device = ScrubbedByProgram(config)
    device.fill(np.random.default_rng(0))
    nothing = np.zeros(0, np.uint8)
    device.execute(scrub_program(config), nothing, nothing.copy())
    assert not device.unified_buffer.any()
    assert not device.accumulators.any()
    if config.unified_buffer_rows >= 8:
        assert not device.biases.any()
        assert not device.scales.any()
    assert device.tables.any() == (config.unified_buffer_rows < 256 // config.size)


@pytest.mark.parametrize("name", CONFIGS)
def test_program_is_legal_but_for_its_tile(name: str) -> None:
    """As an ordinary program it would fault: only the scrubber may use the tile left in the array."""
    checker = LegalityChecker(CONFIGS[name])
    for instruction in scrub_program(CONFIGS[name]):
        multiplies = instruction.word & 0xFF == Opcode.MATRIX_MULTIPLY
        assert checker.check(instruction) is (FaultCode.NO_TILE if multiplies else FaultCode.NONE)
