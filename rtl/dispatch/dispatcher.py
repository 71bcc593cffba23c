"""Dispatcher: takes instructions in order and hands them to the units."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.events import EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import UNITS, WORD_BITS, Opcode, Unit
from openmxu.rtl.common.interfaces import EventLayout
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.dispatch.check.instruction_check import InstructionCheck
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.command_queues import CommandQueues
from openmxu.rtl.dispatch.commands import (
    activation_command,
    activation_start,
    host_command,
    loads_weights,
    matrix_command,
    weight_command,
    write_command,
)
from openmxu.rtl.dispatch.configuration_registers import ConfigurationRegisters
from openmxu.rtl.dispatch.instruction_decoder import InstructionDecoder
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from openmxu.rtl.dispatch.tile_ledger import TileLedger

__all__ = ["Dispatcher"]

_DRAINING = {
    Opcode.HALT: EventKind.HALT,
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
}
"""Instructions that wait for all units, and the events that they then cause."""


class _Action(data.StructLayout):
    """Action of an instruction when it leaves the dispatcher; at most one of these.

    Attributes
    ----------
    queues
        One bit for each unit: the instruction is queued there.
    reads_weights, configures
        It is handed to the weight fetcher; it sets a configuration register, without a unit.
    ends
        It ends without further action: it has nothing to wait for, or nothing more.
    """

    def __init__(self) -> None:
        super().__init__({"queues": len(QueuedUnit), "reads_weights": 1, "configures": 1, "ends": 1})


class Dispatcher(wiring.Component):
    """Checks each instruction, gives it the configuration of its place in the program, and queues it at its unit.

    Dispatch is in order, six cycles per instruction, twelve for one with a plane; it waits while the unit's queue is
    full. Halt, a fault, Interrupt_Host and Host_Synchronize wait for all units; the first two empty the weight path as
    well.

    Members
    -------
    instructions
        Instruction words. After a fault they are taken and dropped until ``clear_fault``.
    host_read, host_write, matrix, activation
        Commands that may start.
    activation_work, activation_queued
        The new instruction's command if it is for the activation unit, held until the cycle after
        ``activation_queued``, which is set when it is queued.
    weights
        Commands for the weight fetcher, which has a separate queue.
    done
        One bit for each :class:`~openmxu.rtl.dispatch.scoreboard.QueuedUnit`: its oldest instruction has finished.
    writing
        What finished instructions have computed is still on its way to a memory.
    weights_settled, weights_empty, flush_weights
        No tile is in flight from weight memory; no tile is anywhere in the weight path; empty the weight path.
    windows
        Memory that programs may touch.
    scrubs, clear_registers
        The word in ``instructions`` is the scrubber's, and may use a tile that was never taken; set the configuration
        registers to 0.
    clear_fault, acknowledge
        From the host: go on after a fault; go on after Host_Synchronize.
    events
        Events for the host.
    idle
        Dispatch is between two programs.
    index
        Index of the instruction that dispatch has reached, within its program.
    running, faulted, waiting
        A program runs, from its first instruction to the end of Halt or a fault; a fault is pending; dispatch waits for
        ``acknowledge``.
    busy
        One bit for each queued unit: it has unfinished instructions.
    matrix_waits
        Units for which the matrix unit's next instruction waits.
    retired_other
        An instruction that no unit counts has been executed.
    """

    sleeps = True
    """See :mod:`openmxu.rtl.simulation.sleeping_units`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        units = len(QueuedUnit)
        super().__init__(
            {
                "instructions": In(stream.Signature(WORD_BITS)),
                "host_read": Out(stream.Signature(host_command(config))),
                "host_write": Out(stream.Signature(write_command(config))),
                "matrix": Out(stream.Signature(matrix_command(config))),
                "activation": Out(stream.Signature(activation_start(config))),
                "activation_work": Out(activation_command(config)),
                "activation_queued": Out(1),
                "weights": Out(stream.Signature(weight_command(config))),
                "done": In(units),
                "writing": In(1),
                "weights_settled": In(1),
                "weights_empty": In(1),
                "flush_weights": Out(1),
                "windows": In(MemoryWindows(config)),
                "scrubs": In(1),
                "clear_registers": In(1),
                "clear_fault": In(1),
                "acknowledge": In(1),
                "events": Out(stream.Signature(EventLayout)),
                "idle": Out(1),
                "index": Out(32),
                "running": Out(1),
                "faulted": Out(1),
                "waiting": Out(1),
                "busy": Out(units),
                "matrix_waits": Out(units),
                "retired_other": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def heeded(self) -> list[tuple[Value, Value]]:
        """See :mod:`openmxu.rtl.simulation.sleeping_units`."""
        return [(signal, self._dispatches) for signal in (self.writing, self.weights_settled, self.weights_empty)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.check = self._check = InstructionCheck(self.config)
        m.submodules.registers = self._registers = ConfigurationRegisters()
        m.submodules.decoder = self._decoder = InstructionDecoder(self.config)
        m.submodules.queues = self._queues = CommandQueues(self.config)
        m.submodules.tiles = self._tiles = TileLedger(self.config)
        m.submodules.weight_commands = self._weights = RegisterSlice(weight_command(self.config), half_rate=True)
        is_ = by_opcode(self._check.opcode_is, self.config)
        self._connect(m)
        self._sequence(m, is_)
        return m

    def _connect(self, m: Module) -> None:
        check, registers, queues, tiles = self._check, self._registers, self._queues, self._tiles
        decoder = self._decoder
        m.d.comb += [
            check.new_word.eq(self.instructions.payload),
            check.configuration.eq(registers.values),
            check.windows.eq(self.windows),
            check.has_tile.eq(tiles.has_tile | self.scrubs),
            check.has_queued_tile.eq(tiles.has_queued_tile),
            check.has_two_queued_tiles.eq(tiles.has_two_queued_tiles),
            check.weight_queue_full.eq(tiles.queue_full),
            registers.word.eq(check.word),
            registers.clear.eq(self.clear_registers),
            decoder.word.eq(check.word),
            decoder.opcode_is.eq(check.opcode_is),
            decoder.loads_parameters.eq(check.loads_parameters),
            decoder.loads_table.eq(check.loads_table),
            decoder.configuration.eq(registers.values),
            decoder.ranges.eq(check.ranges),
            queues.compare.eq(check.ranged & decoder.is_queued),
            decoder.host.eq(check.host),
            decoder.host_end.eq(check.host_end),
            queues.unit.eq(decoder.unit),
            queues.access.eq(decoder.access),
            queues.transfer.eq(decoder.transfer),
            queues.multiplication.eq(decoder.multiplication),
            queues.activation_work.kind.eq(decoder.activation_work.kind),
            queues.activation_work.walk.eq(decoder.activation_work.walk),
            self.activation_work.eq(decoder.activation_work),
            self.activation_queued.eq(queues.push[QueuedUnit.ACTIVATION.value]),
            self._weights.input.payload.eq(decoder.weights),
            queues.done.eq(self.done),
            tiles.tiles.eq(decoder.weights.tiles),
            self.busy.eq(queues.busy),
            self.matrix_waits.eq(queues.matrix_waits),
        ]
        if loads_weights(self.config):
            m.d.comb += check.may_load.eq(tiles.may_load)
        connect(m, self._weights.output, flipped(self.weights))
        for name in ("host_read", "host_write", "matrix", "activation"):
            connect(m, getattr(queues, name), flipped(getattr(self, name)))

    def _sequence(self, m: Module, is_: dict) -> None:
        """Execute one instruction after the other."""
        check, queues, tiles = self._check, self._queues, self._tiles
        index = self.index
        event = Signal(EventKind)
        accept = Signal()
        take = Signal()
        # Set from the arrival of a word to its end, in one register; words that end with an event execute nothing.
        dispatches = self._dispatches = Signal()
        ends_program = Signal()
        # A cycle old, like `may` below: while an instruction waits, units can only become free.
        drained = Signal()
        flushes = Signal()
        is_flushed = Signal()
        m.d.sync += [
            drained.eq(~queues.busy.any() & ~self.writing & self.weights_settled),
            is_flushed.eq(self.weights_empty & ~self.writing & tiles.is_clear),
        ]
        m.d.comb += [
            ends_program.eq((event == EventKind.HALT) | (event == EventKind.FAULT)),
            take.eq(self.instructions.valid & self.instructions.ready & ~self.faulted),
            check.load.eq(~dispatches),
            check.start.eq(take),
            self.events.p.kind.eq(event),
            self.events.p.fault.eq(Mux(event == EventKind.FAULT, check.fault, FaultCode.NONE)),
            self.events.p.tag.eq(Mux(ends_program, 0, field_of(check.word, Opcode.DEBUG_TAG, "tag"))),
            self.events.p.index.eq(index),
            self.flush_weights.eq(flushes),
            tiles.clear.eq(flushes),
        ]
        with m.If(take):
            m.d.sync += self.running.eq(1)

        self._execute(m, is_, dispatches, accept)
        told = Signal()
        m.d.sync += told.eq(self.events.valid & self.events.ready)

        with m.FSM():
            with m.State("FETCH"):
                m.d.comb += [self.instructions.ready.eq(1), self.idle.eq(~self.running)]
                with m.If(take):
                    m.d.sync += dispatches.eq(1)
                    m.next = "DISPATCH"

            with m.State("DISPATCH"):
                with m.If(check.legal):
                    for opcode, kind in _DRAINING.items():
                        with m.If(is_[opcode]):
                            m.d.sync += event.eq(kind)
                            m.next = "DRAIN"
                    with m.If(is_[Opcode.DEBUG_TAG]):
                        m.d.sync += event.eq(EventKind.DEBUG_TAG)
                        m.next = "EVENT"
                with m.Elif(check.done):
                    m.d.sync += event.eq(EventKind.FAULT)
                    m.next = "DRAIN"
                with m.If(accept):
                    m.d.sync += [index.eq(index + 1), dispatches.eq(0)]
                    m.next = "FETCH"

            with m.State("DRAIN"):
                with m.If(ends_program):
                    m.d.sync += flushes.eq(~queues.busy.any())
                    with m.If(flushes & is_flushed):
                        # Before the event, so that the counters have stopped when the host receives it.
                        m.d.sync += [self.running.eq(0), flushes.eq(0)]
                        m.next = "EVENT"
                with m.Elif(drained):
                    m.next = "EVENT"

            with m.State("EVENT"):
                m.d.comb += self.events.valid.eq(~told)
                with m.If(told):
                    m.d.comb += self.retired_other.eq(event != EventKind.FAULT)
                    m.d.sync += [index.eq(Mux(ends_program, 0, index + 1)), dispatches.eq(0)]
                    with m.If(event == EventKind.FAULT):
                        m.next = "FAULTED"
                    with m.Elif(event == EventKind.HOST_SYNCHRONIZE):
                        m.next = "ACKNOWLEDGE"
                    with m.Else():
                        m.next = "FETCH"

            with m.State("ACKNOWLEDGE"):
                m.d.comb += self.waiting.eq(1)
                with m.If(self.acknowledge):
                    m.next = "FETCH"

            with m.State("FAULTED"):
                m.d.comb += [self.faulted.eq(1), self.instructions.ready.eq(1)]
                with m.If(self.clear_fault):
                    m.next = "FETCH"

    def _execute(self, m: Module, is_: dict, dispatches: Value, accept: Signal) -> None:
        """Queue the instruction, or execute it if it needs no unit; ``accept`` is set when that is done.

        The result of the check is known late and has long wires, so there are registers before and after it. ``may`` is
        a cycle old then, which is safe: until the instruction leaves, units can only become free.
        """
        check, queues, tiles, weights = self._check, self._queues, self._tiles, self._weights.input
        decoder, multiplication = self._decoder, self._queues.multiplication
        unit_busy = Cat(
            ~self.weights_settled if unit is Unit.WEIGHT else queues.busy[QueuedUnit[unit.name].value] for unit in UNITS
        )
        has_synchronized = ~(unit_busy & field_of(check.word, Opcode.SYNCHRONIZE, "units")).any()
        sets_register = is_[Opcode.SET_CONFIGURATION] & ~decoder.is_queued
        # An instruction for two units.
        loads = is_.get(Opcode.LOAD_WEIGHTS, Const(0))
        may, action = Signal(_Action()), Signal(_Action())
        takes, takes_two, takes_another = Signal(), Signal(), Signal()
        m.d.sync += [
            may.queues.eq(
                Cat(decoder.is_queued & (decoder.unit == unit) & ~queues.full[unit.value] for unit in QueuedUnit)
                & (weights.ready | ~loads).replicate(len(QueuedUnit))
            ),
            may.reads_weights.eq(is_[Opcode.READ_WEIGHTS] & weights.ready),
            may.configures.eq(sets_register),
            may.ends.eq(is_[Opcode.NOP] | (is_[Opcode.SYNCHRONIZE] & has_synchronized)),
            takes.eq((is_[Opcode.MATRIX_MULTIPLY] | is_[Opcode.CONVOLVE]) & multiplication.next_tile),
            takes_two.eq(takes & multiplication.wide_weights),
            action.eq(Mux(dispatches & check.passes & ~accept, Value.cast(may), 0)),
        ]
        queued = action.queues.any()
        m.d.comb += [
            accept.eq(Value.cast(action).any()),
            queues.push.eq(action.queues),
            weights.valid.eq(action.reads_weights | (queued & loads)),
            self._registers.write.eq(action.configures),
        ]
        with m.If(action.ends | action.configures):
            m.d.comb += self.retired_other.eq(1)
        # A cycle later, because the outputs of the ledger matter only to the check of the next instruction.
        m.d.sync += [
            tiles.enqueue.eq(weights.valid),
            tiles.take.eq(takes_another | (queued & takes)),
            takes_another.eq(queued & takes_two),
        ]
