"""Dispatcher: takes instructions in order and hands them to the units."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.events import EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, UNITS, WORD_BITS, Opcode, OutputFormat, Register, Unit
from openmxu.rtl.command_queues import CommandQueues
from openmxu.rtl.commands import ActivationKind, activation_command, host_command, matrix_command, weight_command
from openmxu.rtl.configuration_registers import ConfigurationRegisters
from openmxu.rtl.instruction_check import InstructionCheck, MemoryWindows, field_of, slice_field
from openmxu.rtl.interfaces import EventLayout
from openmxu.rtl.scoreboard import QueuedUnit
from openmxu.rtl.tile_ledger import TileLedger

__all__ = ["Dispatcher"]

_QUEUED = (
    Opcode.READ_HOST_MEMORY,
    Opcode.READ_HOST_MEMORY_ALTERNATE,
    Opcode.WRITE_HOST_MEMORY,
    Opcode.WRITE_HOST_MEMORY_ALTERNATE,
    Opcode.MATRIX_MULTIPLY,
    Opcode.ACTIVATE,
)
"""Instructions that always go to a unit with a queue; a Set_Configuration that loads does as well."""

_DRAINING = {
    Opcode.HALT: EventKind.HALT,
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
}
"""Instructions that wait for all units, and what they tell the host then."""


class Dispatcher(wiring.Component):
    """Checks each instruction, gives it the configuration of its place in the program, and queues it at its unit.

    Dispatch is in order, five cycles an instruction; it waits while the unit's queue is full. Halt, a fault,
    Interrupt_Host and Host_Synchronize wait for all units; the first two empty the weight path as well.

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
    clear_fault, acknowledge
        From the host: go on after a fault; go on after Host_Synchronize.
    events
        For the host.
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
                "clear_fault": In(1),
                "acknowledge": In(1),
                "events": Out(stream.Signature(EventLayout)),
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
        m.submodules.queues = self._queues = CommandQueues(self.config)
        m.submodules.tiles = self._tiles = TileLedger(self.config)
        is_ = {format.opcode: self._check.opcode_is[index] for index, format in enumerate(FORMATS)}
        # The word stands still during its check, three cycles at least: what is decoded from it goes through registers.
        number = field_of(self._check.word, Opcode.SET_CONFIGURATION, "register")
        is_load = Signal()
        m.d.sync += is_load.eq(is_[Opcode.SET_CONFIGURATION] & (number == Register.LOAD_PARAMETERS))

        self._connect(m)
        self._describe(m, is_, is_load)
        self._sequence(m, is_, is_load)
        return m

    def _connect(self, m: Module) -> None:
        check, registers, queues, tiles = self._check, self._registers, self._queues, self._tiles
        m.d.comb += [
            check.new_word.eq(self.instructions.payload),
            check.host_stride.eq(registers.host_stride),
            check.windows.eq(self.windows),
            check.has_tile.eq(tiles.has_tile),
            check.has_queued_tile.eq(tiles.has_queued_tile),
            check.weight_queue_full.eq(tiles.queue_full),
            registers.word.eq(check.word),
            queues.check.eq(check.ranges_done),
            queues.done.eq(self.done),
            tiles.tiles.eq(field_of(check.word, Opcode.READ_WEIGHTS, "tiles")),
            self.busy.eq(queues.busy),
            self.matrix_waits.eq(queues.matrix_waits),
        ]
        for name in ("host_read", "host_write", "matrix", "activation"):
            connect(m, getattr(queues, name), flipped(getattr(self, name)))

    def _describe(self, m: Module, is_: dict, is_load: Signal) -> None:
        """What the instruction touches, and its command for each unit; narrowed to widths that legal values fit."""
        check, registers, queues = self._check, self._registers, self._queues
        word = check.word
        is_write = is_[Opcode.WRITE_HOST_MEMORY] | is_[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        is_alternate = is_[Opcode.READ_HOST_MEMORY_ALTERNATE] | is_[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        is_matrix, is_activate = is_[Opcode.MATRIX_MULTIPLY], is_[Opcode.ACTIVATE]

        unit = Signal(QueuedUnit)
        m.d.comb += queues.unit.eq(unit)
        with m.If(is_activate | is_load):
            m.d.sync += unit.eq(QueuedUnit.ACTIVATION)
        with m.Elif(is_matrix):
            m.d.sync += unit.eq(QueuedUnit.MATRIX)
        with m.Elif(is_write):
            m.d.sync += unit.eq(QueuedUnit.HOST_WRITE)
        with m.Else():
            m.d.sync += unit.eq(QueuedUnit.HOST_READ)

        access = queues.access
        m.d.comb += [
            access.unified_buffer.eq(check.unified_buffer),
            access.unified_buffer_end.eq(check.unified_buffer_end),
            access.writes_unified_buffer.eq(~(is_write | is_matrix | is_load)),
            access.accumulators.eq(is_matrix | is_activate),
            access.accumulator.eq(check.accumulator),
            access.accumulator_end.eq(check.accumulator_end),
            access.host.eq(check.host),
            access.host_end.eq(check.host_end),
        ]

        transfer, multiplication, work = queues.transfer, queues.multiplication, queues.activation_work
        output_format = field_of(word, Opcode.ACTIVATE, "output")
        m.d.comb += [
            transfer.host.eq(check.host),
            transfer.unified_buffer.eq(check.unified_buffer),
            transfer.rows.eq(field_of(word, Opcode.READ_HOST_MEMORY, "rows")),
            transfer.alternate.eq(is_alternate),
            transfer.stride.eq(registers.host_stride),
            multiplication.unified_buffer.eq(check.unified_buffer),
            multiplication.accumulator.eq(check.accumulator),
            multiplication.rows.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "rows")),
            multiplication.accumulate.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "accumulate")),
            multiplication.next_tile.eq(field_of(word, Opcode.MATRIX_MULTIPLY, "next_tile")),
            multiplication.format.eq(registers.input),
            work.unified_buffer.eq(check.unified_buffer),
            work.accumulator.eq(check.accumulator),
            work.output.eq(registers.output),
            self.weights.p.address.eq(field_of(word, Opcode.READ_WEIGHTS, "weights")),
            self.weights.p.tiles.eq(field_of(word, Opcode.READ_WEIGHTS, "tiles")),
            self.weights.p.format.eq(registers.weight),
        ]
        with m.If(is_load):
            value = field_of(word, Opcode.SET_CONFIGURATION, "value")
            load = REGISTERS[Register.LOAD_PARAMETERS]
            m.d.comb += [
                work.kind.eq(ActivationKind.LOAD_PARAMETERS),
                work.parameters.eq(slice_field(value, load.field("first"))),
                work.rows.eq(slice_field(value, load.field("count"))),
            ]
        with m.Else():
            m.d.comb += [
                work.kind.eq(Mux(output_format == OutputFormat.INT32, ActivationKind.INT32, ActivationKind.BYTE)),
                work.parameters.eq(field_of(word, Opcode.ACTIVATE, "parameters")),
                work.rows.eq(field_of(word, Opcode.ACTIVATE, "rows")),
            ]

    def _sequence(self, m: Module, is_: dict, is_load: Signal) -> None:
        """Execute one instruction after the other."""
        check, queues, tiles = self._check, self._queues, self._tiles
        index = Signal(32)
        event = Signal(EventKind)
        accept = Signal()
        take = Signal()
        ends_program = Signal()
        units_idle = Signal()
        is_queued = Signal()
        m.d.sync += is_queued.eq(is_load | Cat(is_[opcode] for opcode in _QUEUED).any())
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
                m.d.comb += self.instructions.ready.eq(1)
                with m.If(take):
                    m.next = "DISPATCH"

            with m.State("DISPATCH"):
                with m.If(check.done):
                    with m.If(~check.legal):
                        m.d.sync += event.eq(EventKind.FAULT)
                        m.next = "DRAIN"
                    with m.Else():
                        self._execute(m, is_, is_queued, accept)
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

    def _execute(self, m: Module, is_: dict, is_queued: Signal, accept: Signal) -> None:
        """Queue the instruction, or do what needs no unit; ``accept`` when that is done."""
        check, registers, queues, tiles = self._check, self._registers, self._queues, self._tiles
        waits_for = Signal(len(UNITS))
        unit_busy = Cat(
            ~self.weights_settled if unit is Unit.WEIGHT else queues.busy[QueuedUnit[unit.name].value] for unit in UNITS
        )
        m.d.comb += waits_for.eq(field_of(check.word, Opcode.SYNCHRONIZE, "units"))
        with m.If(is_queued):
            m.d.comb += [accept.eq(~queues.full.bit_select(queues.unit, 1)), queues.push.eq(accept)]
            with m.If(is_[Opcode.MATRIX_MULTIPLY] & queues.multiplication.next_tile):
                m.d.comb += tiles.take.eq(accept)
        with m.Elif(is_[Opcode.READ_WEIGHTS]):
            m.d.comb += [self.weights.valid.eq(1), accept.eq(self.weights.ready), tiles.enqueue.eq(accept)]
        with m.Elif(is_[Opcode.SET_CONFIGURATION]):
            m.d.comb += [registers.write.eq(1), accept.eq(1), self.retired_other.eq(1)]
        with m.Elif(is_[Opcode.SYNCHRONIZE]):
            m.d.comb += [accept.eq(~(unit_busy & waits_for).any()), self.retired_other.eq(accept)]
        with m.Elif(is_[Opcode.NOP]):
            m.d.comb += [accept.eq(1), self.retired_other.eq(1)]
