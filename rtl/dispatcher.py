"""Dispatcher: takes instructions in order and hands them to the units."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.events import EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, UNITS, WORD_BITS, Opcode, Unit
from openmxu.rtl.command_queues import CommandQueues
from openmxu.rtl.commands import activation_command, host_command, matrix_command, weight_command
from openmxu.rtl.configuration_registers import ConfigurationRegisters
from openmxu.rtl.instruction_check import InstructionCheck, MemoryWindows
from openmxu.rtl.instruction_decoder import InstructionDecoder
from openmxu.rtl.instruction_fields import field_of
from openmxu.rtl.interfaces import EventLayout
from openmxu.rtl.register_slice import RegisterSlice
from openmxu.rtl.scoreboard import QueuedUnit
from openmxu.rtl.tile_ledger import TileLedger

__all__ = ["Dispatcher"]

_DRAINING = {
    Opcode.HALT: EventKind.HALT,
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
}
"""Instructions that wait for all units, and what they tell the host then."""


class Dispatcher(wiring.Component):
    """Checks each instruction, gives it the configuration of its place in the program, and queues it at its unit.

    Dispatch is in order, six cycles an instruction, thirteen for one with a plane; it waits while the unit's queue is
    full. Halt, a fault, Interrupt_Host and Host_Synchronize wait for all units; the first two empty the weight path as
    well.

    Members
    -------
    instructions
        Words. After a fault they are taken and dropped until ``clear_fault``.
    host_read, host_write, matrix, activation
        Commands that may start.
    weights
        Commands for the weight fetcher's own queue.
    done
        One bit for each :class:`~openmxu.rtl.scoreboard.QueuedUnit`: its oldest instruction has finished.
    weights_settled, weights_empty, flush_weights
        Nothing is on its way from weight memory; nor is a tile anywhere before the array; empty all that.
    windows
        Memory that programs may touch.
    scrubs, clear_registers
        The word in ``instructions`` is the scrubber's: it may use a tile that nobody took; configuration registers
        become 0.
    clear_fault, acknowledge
        From the host: go on after a fault; go on after Host_Synchronize.
    events
        For the host.
    idle
        Between two programs.
    index
        Of the instruction that dispatch has reached, within its program.
    running, faulted, waiting
        From the first instruction to the end of Halt or a fault; after a fault; for ``acknowledge``.
    busy
        One bit for each queued unit.
    matrix_waits
        Units for which the matrix unit's next instruction waits.
    retired_other
        An instruction that no unit counts has been executed.
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

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.check = self._check = InstructionCheck(self.config)
        m.submodules.registers = self._registers = ConfigurationRegisters()
        m.submodules.decoder = self._decoder = InstructionDecoder(self.config)
        m.submodules.queues = self._queues = CommandQueues(self.config)
        m.submodules.tiles = self._tiles = TileLedger(self.config)
        m.submodules.weight_commands = self._weights = RegisterSlice(weight_command(self.config))
        is_ = {format.opcode: self._check.opcode_is[index] for index, format in enumerate(FORMATS)}
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
            decoder.configuration.eq(registers.values),
            decoder.ranges.eq(check.ranges),
            queues.unit.eq(decoder.unit),
            queues.access.eq(decoder.access),
            queues.transfer.eq(decoder.transfer),
            queues.multiplication.eq(decoder.multiplication),
            queues.activation_work.eq(decoder.activation_work),
            self._weights.input.payload.eq(decoder.weights),
            queues.done.eq(self.done),
            tiles.tiles.eq(field_of(check.word, Opcode.READ_WEIGHTS, "tiles")),
            self.busy.eq(queues.busy),
            self.matrix_waits.eq(queues.matrix_waits),
        ]
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
        ends_program = Signal()
        units_idle = Signal()
        has_room, has_synchronized = self._watch_units(m)
        m.d.comb += [
            units_idle.eq(~queues.busy.any()),
            ends_program.eq((event == EventKind.HALT) | (event == EventKind.FAULT)),
            take.eq(self.instructions.valid & self.instructions.ready & ~self.faulted),
            check.start.eq(take),
            self.events.p.kind.eq(event),
            self.events.p.fault.eq(Mux(event == EventKind.FAULT, check.fault, FaultCode.NONE)),
            self.events.p.tag.eq(Mux(ends_program, 0, field_of(check.word, Opcode.DEBUG_TAG, "tag"))),
            self.events.p.index.eq(index),
        ]
        with m.If(take):
            m.d.sync += self.running.eq(1)

        with m.FSM():
            with m.State("FETCH"):
                m.d.comb += [self.instructions.ready.eq(1), self.idle.eq(~self.running)]
                with m.If(take):
                    m.next = "DISPATCH"

            with m.State("DISPATCH"):
                with m.If(check.done):
                    with m.If(~check.legal):
                        m.d.sync += event.eq(EventKind.FAULT)
                        m.next = "DRAIN"
                    with m.Else():
                        self._execute(m, is_, accept, has_room, has_synchronized)
                        for opcode, kind in _DRAINING.items():
                            with m.If(is_[opcode]):
                                m.d.sync += event.eq(kind)
                                m.next = "DRAIN"
                        with m.If(is_[Opcode.DEBUG_TAG]):
                            m.d.sync += event.eq(EventKind.DEBUG_TAG)
                            m.next = "EVENT"
                with m.If(accept):
                    m.d.sync += index.eq(index + 1)
                    m.next = "FETCH"

            with m.State("DRAIN"):
                with m.If(ends_program):
                    m.d.comb += [self.flush_weights.eq(units_idle), tiles.clear.eq(units_idle)]
                    with m.If(units_idle & self.weights_empty & tiles.is_clear):
                        # Before the event, so that the counters stand still when the host learns of it.
                        m.d.sync += self.running.eq(0)
                        m.next = "EVENT"
                with m.Elif(units_idle & self.weights_settled):
                    m.next = "EVENT"

            with m.State("EVENT"):
                m.d.comb += self.events.valid.eq(1)
                with m.If(self.events.ready):
                    m.d.comb += self.retired_other.eq(event != EventKind.FAULT)
                    m.d.sync += index.eq(Mux(ends_program, 0, index + 1))
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

    def _watch_units(self, m: Module) -> tuple[Signal, Signal]:
        """Whether the instruction's unit has room for it, and whether all units are idle that a Synchronize names.

        Both are a cycle old: units only get free while an instruction waits, and it takes longer than that to get here.
        """
        queues = self._queues
        has_room, has_synchronized = Signal(), Signal()
        waits_for = Signal(len(UNITS))
        unit_busy = Cat(
            ~self.weights_settled if unit is Unit.WEIGHT else queues.busy[QueuedUnit[unit.name].value] for unit in UNITS
        )
        m.d.comb += waits_for.eq(field_of(self._check.word, Opcode.SYNCHRONIZE, "units"))
        m.d.sync += [
            has_room.eq(~queues.full.bit_select(queues.unit, 1)),
            has_synchronized.eq(~(unit_busy & waits_for).any()),
        ]
        return has_room, has_synchronized

    def _execute(self, m: Module, is_: dict, accept: Signal, has_room: Signal, has_synchronized: Signal) -> None:
        """Queue the instruction, or do what needs no unit; ``accept`` when that is done."""
        registers, queues, tiles = self._registers, self._queues, self._tiles
        with m.If(self._decoder.is_queued):
            m.d.comb += [accept.eq(has_room), queues.push.eq(accept)]
            is_matrix = is_[Opcode.MATRIX_MULTIPLY] | is_[Opcode.CONVOLVE]
            with m.If(is_matrix & queues.multiplication.next_tile):
                m.d.comb += [
                    tiles.take.eq(accept & ~queues.multiplication.wide_weights),
                    tiles.take_two.eq(accept & queues.multiplication.wide_weights),
                ]
        with m.Elif(is_[Opcode.READ_WEIGHTS]):
            m.d.comb += [
                self._weights.input.valid.eq(1),
                accept.eq(self._weights.input.ready),
                tiles.enqueue.eq(accept),
            ]
        with m.Elif(is_[Opcode.SET_CONFIGURATION]):
            m.d.comb += [registers.write.eq(1), accept.eq(1), self.retired_other.eq(1)]
        with m.Elif(is_[Opcode.SYNCHRONIZE]):
            m.d.comb += [accept.eq(has_synchronized), self.retired_other.eq(accept)]
        with m.Elif(is_[Opcode.NOP]):
            m.d.comb += [accept.eq(1), self.retired_other.eq(1)]
