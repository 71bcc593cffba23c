"""Instructions to steps: everything that does not depend on the contents of memories is decided here, once."""

from __future__ import annotations

from openmxu.arch.isa import Instruction, Opcode, Register
from openmxu.arch.legality import LegalityChecker
from openmxu.sim.interpreter.activation import activate
from openmxu.sim.interpreter.memories import Memories, Step
from openmxu.sim.interpreter.products import Walk, convolution_walk, matrix_walk, multiply
from openmxu.sim.interpreter.tiles import TileQueue
from openmxu.sim.interpreter.transfers import load_parameters, load_table, read_host_memory, write_host_memory

__all__ = ["Translator"]


class Translator:
    """Translates a program from its beginning.

    Parameters
    ----------
    memories
        What the steps work on.
    checker
        Follows the program: its registers are those that the instructions before have set.
    """

    def __init__(self, memories: Memories, checker: LegalityChecker) -> None:
        self._memories = memories
        self._checker = checker
        self._tiles = TileQueue(memories)

    def step(self, instruction: Instruction) -> Step | None:
        """The step of the next instruction, a legal one, and the checker's advance; ``None`` if memories stay as they
        are."""
        if instruction.opcode is Opcode.SET_CONFIGURATION:
            self._checker.advance(instruction)
            return self._configuration_step(instruction)
        step = self._step(instruction)
        self._checker.advance(instruction)
        return step

    def _step(self, instruction: Instruction) -> Step | None:
        memories, registers, values = self._memories, self._checker.register, instruction.values
        match instruction.opcode:
            case Opcode.READ_HOST_MEMORY:
                return read_host_memory(memories, values, memories.unified_buffer.shape[1])
            case Opcode.READ_HOST_MEMORY_ALTERNATE:
                return read_host_memory(memories, values, registers(Register.HOST_STRIDE)["stride"])
            case Opcode.WRITE_HOST_MEMORY:
                return write_host_memory(memories, values, memories.unified_buffer.shape[1])
            case Opcode.WRITE_HOST_MEMORY_ALTERNATE:
                return write_host_memory(memories, values, registers(Register.HOST_STRIDE)["stride"])
            case Opcode.LOAD_WEIGHTS:
                return self._tiles.load(values, registers(Register.WEIGHT_FORMAT))
            case Opcode.READ_WEIGHTS:
                self._tiles.read(values, registers(Register.WEIGHT_FORMAT))
            case Opcode.MATRIX_MULTIPLY:
                return self._product(instruction, matrix_walk(values["rows"]))
            case Opcode.CONVOLVE:
                plane = registers(Register.CONVOLUTION_PLANE)
                walk = convolution_walk(
                    plane=(plane["height"], plane["width"]),
                    outputs=(values["height"], values["width"]),
                    start=(values["dy"], values["dx"]),
                    step=(plane["stride_y"], plane["stride_x"]),
                )
                return self._product(instruction, walk)
            case Opcode.ACTIVATE:
                return activate(memories, values, registers)
            case Opcode.HALT:
                self._tiles.clear()
                return memories.loaded.clear
        return None

    def _product(self, instruction: Instruction, walk: Walk) -> Step:
        values = instruction.values
        tiles = [self._tiles.take() for _ in range(values["next_tile"] + values["wide_weights"])]
        return multiply(self._memories, values, walk, self._checker.register(Register.INPUT_FORMAT), tiles)

    def _configuration_step(self, instruction: Instruction) -> Step | None:
        """Some registers cause a transfer when they are set."""
        match instruction["register"]:
            case Register.LOAD_PARAMETERS:
                return load_parameters(self._memories, self._checker.register(Register.LOAD_PARAMETERS))
            case Register.LOAD_TABLE:
                return load_table(self._memories, self._checker.register(Register.LOAD_TABLE))
        return None
