"""Dispatcher of the lite profile: one instruction after the other."""

from collections.abc import Callable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.events import EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import WORD_BITS, Opcode, Register, Unit
from openmxu.rtl.common.interfaces import EventLayout
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.commands import (
    ActivationKind,
    activation_command,
    host_command,
    matrix_command,
    read_operands,
    weight_command,
)
from openmxu.rtl.dispatch.configuration_registers import ConfigurationRegisters
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from openmxu.rtl.lite.instruction_check import LiteInstructionCheck

__all__ = ["INDEX_WIDTH", "LiteDispatcher"]

INDEX_WIDTH = 24
"""Bits of the index of an instruction, for which a serial port would need hours."""

_EVENTS = {
    Opcode.HALT: EventKind.HALT,
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
    Opcode.DEBUG_TAG: EventKind.DEBUG_TAG,
}


class LiteDispatcher(wiring.Component):
    """Checks each instruction and gives it to its unit. The next one comes when it has finished, so that nothing has to
    be kept of an instruction but the word itself: it is taken last, and commands are parts of it.

    Members
    -------
    instructions
        Words, each taken when it has been executed. After a fault they are taken and dropped until ``clear_fault``.
    host_read, host_write, matrix, activation
        Commands; their payloads stand still until ``done``.
    weights
        Commands for the weight fetcher, which executes them while other instructions go on.
    done
        One bit for each :class:`~openmxu.rtl.dispatch.scoreboard.QueuedUnit`: its instruction has finished.
    has_tile, has_queued_tile, weight_queue_full
        See :class:`~openmxu.rtl.lite.instruction_check.LiteInstructionCheck`.
    weights_settled, weights_empty, flush_weights
        Nothing is on its way from weight memory; nor is a tile anywhere before the array; empty all that.
    windows
        Memory that programs may touch.
    clear_fault, acknowledge
        From the host: go on after a fault; go on after Host_Synchronize.
    events
        For the host.
    index
        Of the instruction, within its program; behind ``2**INDEX_WIDTH - 1`` comes 0.
    running, faulted, waiting
        From the first instruction to the end of Halt or a fault; after a fault; for ``acknowledge``.
    busy
        One bit for each queued unit.
    ended
        An instruction has been executed.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        units = len(QueuedUnit)
        super().__init__(
            {
                "instructions": In(stream.Signature(WORD_BITS)),
                "host_read": Out(stream.Signature(host_command(config))),
                "host_write": Out(stream.Signature(host_command(config))),
                "matrix": Out(stream.Signature(matrix_command(config))),
                "activation": Out(stream.Signature(activation_command(config))),
                "weights": Out(stream.Signature(weight_command(config))),
                "done": In(units),
                "has_tile": In(1),
                "has_queued_tile": In(1),
                "weight_queue_full": In(1),
                "weights_settled": In(1),
                "weights_empty": In(1),
                "flush_weights": Out(1),
                "windows": In(MemoryWindows(config)),
                "clear_fault": In(1),
                "acknowledge": In(1),
                "events": Out(stream.Signature(EventLayout)),
                "index": Out(32),
                "running": Out(1),
                "faulted": Out(1),
                "waiting": Out(1),
                "busy": Out(units),
                "ended": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.check = self._check = LiteInstructionCheck(self.config)
        m.submodules.configuration = self._configuration = ConfigurationRegisters()
        word = self.instructions.payload
        self._is = by_opcode(self._check.opcode_is, self.config)
        m.d.comb += [
            self._check.word.eq(word),
            self._check.windows.eq(self.windows),
            self._check.has_tile.eq(self.has_tile),
            self._check.has_queued_tile.eq(self.has_queued_tile),
            self._check.weight_queue_full.eq(self.weight_queue_full),
            self._configuration.word.eq(word),
        ]
        number = field_of(word, Opcode.SET_CONFIGURATION, "register")
        self._is_load = self._is[Opcode.SET_CONFIGURATION] & (number == Register.LOAD_PARAMETERS)
        self._describe(m, word)
        self._sequence(m, word)
        return m

    def _describe(self, m: Module, word: Value) -> None:
        """The commands."""
        configuration = self._configuration.values
        for command in (self.host_read.p, self.host_write.p):
            m.d.comb += [
                command.host.eq(field_of(word, Opcode.READ_HOST_MEMORY, "host")),
                command.unified_buffer.eq(field_of(word, Opcode.READ_HOST_MEMORY, "unified_buffer")),
                command.rows.eq(field_of(word, Opcode.READ_HOST_MEMORY, "rows")),
            ]
        matrix = self.matrix.p
        m.d.comb += [
            matrix.walk.address.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "unified_buffer")),
            matrix.walk.rows.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "rows")),
            matrix.walk.stride_x.eq(1),
            matrix.walk.target.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "accumulator")),
            matrix.accumulate.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "accumulate")),
            matrix.next_tile.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "next_tile")),
            *read_operands(matrix.format, configuration.input_format),
            self.weights.p.address.eq(field_of(word, Opcode.READ_WEIGHTS, "weights")),
            self.weights.p.tiles.eq(field_of(word, Opcode.READ_WEIGHTS, "tiles")),
            *read_operands(self.weights.p.format, configuration.weight_format),
        ]
        work, load = self.activation.p, self._is_load
        # No branches here: bits of a signal that are constant and others that are not would then be driven by processes
        # of which those without an input never run.
        m.d.comb += [
            work.kind.eq(Mux(load, ActivationKind.LOAD_PARAMETERS, ActivationKind.ACTIVATE)),
            work.walk.stride_x.eq(1),
            work.walk.window_height.eq(1),
            work.walk.window_width.eq(1),
            work.walk.address.eq(field_of(word, Opcode.ACTIVATE, "source")),
            work.output.eq(configuration.output_format),
            # An Activate and a load have the number of their parameter set at the same place.
            work.parameters.eq(field_of(word, Opcode.ACTIVATE, "parameters")),
            work.unified_buffer.eq(
                Mux(
                    load,
                    register_field(word, Register.LOAD_PARAMETERS, "unified_buffer"),
                    field_of(word, Opcode.ACTIVATE, "unified_buffer"),
                )
            ),
            work.walk.rows.eq(
                Mux(
                    load,
                    register_field(word, Register.LOAD_PARAMETERS, "count"),
                    field_of(word, Opcode.ACTIVATE, "rows"),
                )
            ),
        ]

    def _sequence(self, m: Module, word: Value) -> None:
        """Execute one instruction after the other."""
        is_, check = self._is, self._check
        index = Signal(INDEX_WIDTH)
        faults, ends_program = Signal(), Signal()
        settling = Signal(range(check.latency))
        m.d.comb += [
            faults.eq(check.fault != FaultCode.NONE),
            ends_program.eq(faults | is_[Opcode.HALT]),
            self.events.p.fault.eq(check.fault),
            self.events.p.tag.eq(Mux(ends_program, 0, field_of(word, Opcode.DEBUG_TAG, "tag"))),
            self.events.p.index.eq(index),
            self.index.eq(index),
        ]
        for opcode, kind in _EVENTS.items():
            with m.If(is_[opcode]):
                m.d.comb += self.events.p.kind.eq(kind)
        with m.If(faults):
            m.d.comb += self.events.p.kind.eq(EventKind.FAULT)

        executes = Signal()
        m.d.comb += [self.busy[unit.value].eq(executes & condition) for unit, (_, condition) in self._units().items()]

        def end() -> None:
            """The instruction has been executed."""
            m.d.comb += self.ended.eq(1)
            m.next = "CHECK"

        with m.FSM():
            with m.State("CHECK"):
                with m.If(self.instructions.valid):
                    m.d.comb += check.enable.eq(1)
                    m.d.sync += [self.running.eq(1), settling.eq(settling + 1)]
                    with m.If(settling == check.latency - 1):
                        m.d.sync += settling.eq(0)
                        m.next = "EXECUTE"
            with m.State("EXECUTE"):
                with m.If(faults):
                    m.next = "DRAIN"
                with m.Else():
                    m.d.comb += executes.eq(1)
                    self._execute(m, word, end)
            with m.State("AWAIT"):
                m.d.comb += executes.eq(1)
                with m.If(self.done.any()):
                    end()
            with m.State("DRAIN"):
                with m.If(ends_program):
                    m.d.comb += self.flush_weights.eq(1)
                    with m.If(self.weights_empty):
                        # Before the event, so that the counters stand still when the host learns of it.
                        m.d.sync += self.running.eq(0)
                        m.next = "EVENT"
                with m.Elif(self.weights_settled):
                    m.next = "EVENT"
            with m.State("EVENT"):
                m.d.comb += self.events.valid.eq(1)
                with m.If(self.events.ready):
                    with m.If(faults):
                        m.d.comb += self.instructions.ready.eq(1)
                        m.d.sync += index.eq(0)
                        m.next = "FAULTED"
                    with m.Elif(is_[Opcode.HOST_SYNCHRONIZE]):
                        m.next = "ACKNOWLEDGE"
                    with m.Else():
                        end()
            with m.State("ACKNOWLEDGE"):
                m.d.comb += self.waiting.eq(1)
                with m.If(self.acknowledge):
                    end()
            with m.State("FAULTED"):
                m.d.comb += [self.faulted.eq(1), self.instructions.ready.eq(1)]
                with m.If(self.clear_fault):
                    m.next = "CHECK"
        with m.If(self.ended):
            m.d.comb += self.instructions.ready.eq(1)
            m.d.sync += index.eq(Mux(ends_program, 0, index + 1))

    def _units(self) -> dict[QueuedUnit, tuple[stream.Interface, Value]]:
        """For each unit its commands, and whether the instruction is one."""
        is_ = self._is
        return {
            QueuedUnit.HOST_READ: (self.host_read, is_[Opcode.READ_HOST_MEMORY]),
            QueuedUnit.HOST_WRITE: (self.host_write, is_[Opcode.WRITE_HOST_MEMORY]),
            QueuedUnit.MATRIX: (self.matrix, is_[Opcode.MATRIX_MULTIPLY]),
            QueuedUnit.ACTIVATION: (self.activation, is_[Opcode.ACTIVATE] | self._is_load),
        }

    def _execute(self, m: Module, word: Value, end: Callable[[], None]) -> None:
        """Give the instruction to its unit, or do what needs no unit."""
        is_ = self._is
        given = Signal()
        for output, condition in self._units().values():
            with m.If(condition):
                m.d.comb += [output.valid.eq(1), given.eq(output.ready)]
        with m.If(given):
            m.next = "AWAIT"
        with m.If(is_[Opcode.READ_WEIGHTS]):
            m.d.comb += self.weights.valid.eq(1)
            with m.If(self.weights.ready):
                end()
        with m.If(is_[Opcode.SET_CONFIGURATION] & ~self._is_load):
            m.d.comb += self._configuration.write.eq(1)
            end()
        waits_for_weights = field_of(word, Opcode.SYNCHRONIZE, "units")[Unit.WEIGHT]
        with m.If(is_[Opcode.SYNCHRONIZE] & (~waits_for_weights | self.weights_settled)):
            end()
        with m.If(is_[Opcode.NOP]):
            end()
        with m.If(is_[Opcode.DEBUG_TAG]):
            m.next = "EVENT"
        with m.If(Cat(is_[opcode] for opcode in _EVENTS if opcode is not Opcode.DEBUG_TAG).any()):
            m.next = "DRAIN"
