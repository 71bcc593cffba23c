"""Instruction check: decodes a word, finds the rows and bytes that it touches, and checks whether it is legal."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Opcode, Operand, Register
from openmxu.rtl.common.comparison import exceeds
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.dispatch.check.format_check import FormatCheck
from openmxu.rtl.dispatch.check.instruction_ranges import InstructionRanges, ranges_layout
from openmxu.rtl.dispatch.check.memory_range import MemoryRange, MemoryWindows
from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["InstructionCheck"]


class InstructionCheck(wiring.Component):
    """Checks what :class:`openmxu.arch.legality.LegalityChecker` checks, in its order.

    Takes one word at a time. The result comes five cycles later; for a plane six more, for a strided transfer one more
    for each bit of its number of rows.

    Members
    -------
    load, new_word
        Load registers from ``new_word``, so that ``start``, which comes late, need not select their inputs. Only before
        the first word or while ``done``; outputs other than ``done`` and ``legal`` have no meaning after it.
    start
        Check ``new_word``; only with ``load``, which must then be 0 until ``done``.
    word, opcode_is
        The word, and one bit for each of the profile's instructions, from the cycle after ``start``.
    configuration
        The configuration registers.
    windows
        See :class:`~openmxu.rtl.dispatch.check.memory_range.MemoryWindows`.
    has_tile, has_queued_tile, has_two_queued_tiles, weight_queue_full, may_load
        A tile is in the array; one is queued; two are; no further Read_Weights may be outstanding; in cores with
        Load_Weights, a further one may.
    ranges
        See :func:`~openmxu.rtl.dispatch.check.instruction_ranges.ranges_layout`: from two cycles before
        ``done`` on, ``origin`` a cycle later.
        Meaningful if the instruction is legal and touches them.
    ranged
        Set in the first cycle in which ``ranges`` are valid, two before ``done``.
    host, host_end
        Bytes of host memory, if the word is a legal transfer, from two cycles before ``done`` on.
    loads_parameters, loads_table
        The word is a Set_Configuration that loads parameters, or a table.
    done
        The check is over and ``legal`` and ``fault`` are its result, until the next ``start``.
    legal, fault
        The check is over without a fault; the fault, see :class:`openmxu.arch.faults.FaultCode`.
    passes
        ``legal`` is set, or will be in the next cycle.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "load": In(1),
                "start": In(1),
                "new_word": In(isa.WORD_BITS),
                "word": Out(isa.WORD_BITS),
                "opcode_is": Out(len(config.features.formats)),
                "configuration": In(configuration_layout()),
                "windows": In(MemoryWindows(config)),
                "has_tile": In(1),
                "has_queued_tile": In(1),
                "has_two_queued_tiles": In(1),
                "weight_queue_full": In(1),
                "loads_parameters": Out(1),
                "loads_table": Out(1),
                "done": Out(1),
                "legal": Out(1),
                "passes": Out(1),
                "fault": Out(FaultCode),
                "ranges": Out(ranges_layout(config)),
                "ranged": Out(1),
                "host": Out(config.host_address_width),
                "host_end": Out(config.host_address_width + 1),
                **({"may_load": In(1)} if loads_weights(config) else {}),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.format = format_ = FormatCheck(self.config)
        m.submodules.ranges = ranges = InstructionRanges(self.config)
        m.submodules.memory = memory = MemoryRange(self.config)
        self._inside, self._memory = ranges, memory
        opcode_is = by_opcode(self.opcode_is, self.config)
        number = field_of(self.new_word, Opcode.SET_CONFIGURATION, "register")
        names_parameters, names_table = Signal(reset_less=True), Signal(reset_less=True)
        with m.If(self.load):
            m.d.sync += [
                self.word.eq(self.new_word),
                names_parameters.eq(number == Register.LOAD_PARAMETERS),
                names_table.eq(number == Register.LOAD_TABLE),
            ]
            for opcode, bit in opcode_is.items():
                m.d.sync += bit.eq(self.new_word[:8] == opcode)
        m.d.comb += [
            self.loads_parameters.eq(opcode_is[Opcode.SET_CONFIGURATION] & names_parameters),
            self.loads_table.eq(opcode_is[Opcode.SET_CONFIGURATION] & names_table),
        ]
        for unit in (format_, ranges):
            m.d.comb += [
                unit.word.eq(self.word),
                unit.opcode_is.eq(self.opcode_is),
                unit.configuration.eq(self.configuration),
            ]
        low = ceil_log2(self.config.host_alignment)
        starts = Signal()
        for unit in (format_, ranges, memory):
            m.d.comb += [unit.load.eq(self.load), unit.new_word.eq(self.new_word)]
        for unit in (ranges, memory):
            m.d.comb += unit.start.eq(starts)
        m.d.comb += [
            memory.stride.eq(self.configuration.host_stride.stride),
            memory.windows.eq(self.windows),
            self.ranges.eq(ranges.ranges),
            # The lowest bits of a legal address are zero.
            self.host.eq(Cat(Const(0, low), self._field(Opcode.READ_HOST_MEMORY, "host")[low:])),
            self.host_end.eq(memory.end),
        ]
        # Set in RANGE; a register, because it selects the operands of comparisons, here and in the scoreboard.
        compares = Signal()
        m.d.sync += compares.eq(0)
        m.d.comb += self.ranged.eq(compares)
        range_faults = self._range_faults(m, platform, opcode_is, compares)
        found = Signal(len(range_faults), reset_less=True)
        fault = Signal(FaultCode)
        for index, (code, _) in reversed(list(enumerate(range_faults))):
            with m.If(found[index]):
                m.d.comb += fault.eq(code)
        m.d.sync += self.fault.eq(Mux(format_.found, format_.fault, fault))

        # Registers settle one after the other: counts with the word, ends of ranges in DECODE, products and strides in
        # EXTENT, the faults that these show in RANGE, the result in JUDGE.
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.next = "DECODE"
            with m.State("DECODE"):
                m.d.comb += starts.eq(1)
                m.next = "EXTENT"
            with m.State("EXTENT"):
                with m.If(ranges.done & memory.done):
                    m.d.sync += compares.eq(1)
                    m.next = "RANGE"
            with m.State("RANGE"):
                m.d.sync += found.eq(Cat(condition for _, condition in range_faults))
                m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.comb += self.passes.eq(~(found.any() | format_.found))
                m.d.sync += [self.done.eq(1), self.legal.eq(self.passes)]
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.passes.eq(self.legal)
                with m.If(self.start):
                    m.d.sync += [self.done.eq(0), self.legal.eq(0)]
                    m.next = "DECODE"
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _range_faults(
        self, m: Module, platform: object, opcode_is: dict[Opcode, Value], compares: Value
    ) -> list[tuple[FaultCode, Value]]:
        """The faults that depend on sizes, windows and queued tiles, highest priority first, while ``compares``."""
        outside = self._inside.outside_buffer

        def flag(name: str, condition: Value) -> Value:
            """A condition on the word alone, registered in parallel with the comparisons."""
            return delayed(m, condition, 1, name)

        is_alternate = opcode_is[Opcode.READ_HOST_MEMORY_ALTERNATE] | opcode_is[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        transfers = is_alternate | opcode_is[Opcode.READ_HOST_MEMORY] | opcode_is[Opcode.WRITE_HOST_MEMORY]
        loads = self.loads_parameters | self.loads_table
        multiplies = opcode_is[Opcode.MATRIX_MULTIPLY] | opcode_is[Opcode.CONVOLVE]
        activates, reads_weights = opcode_is[Opcode.ACTIVATE], opcode_is[Opcode.READ_WEIGHTS]
        loads_tile, may_load = Const(0), Const(1)
        if loads_weights(self.config):
            loads_tile, may_load = opcode_is[Opcode.LOAD_WEIGHTS], self.may_load
        from_unified_buffer = self._field(Opcode.ACTIVATE, "from_unified_buffer")
        has_operand = self._field(Opcode.ACTIVATE, "operand") != Operand.NONE
        is_transfer = flag("is_transfer", transfers)
        is_matrix = flag("is_matrix", multiplies)
        reads_source = flag("reads_source", activates & from_unified_buffer)
        reads_operand = flag("reads_operand", activates & has_operand)
        uses_accumulators = flag("uses_accumulators", multiplies | (activates & ~from_unified_buffer))
        touches_buffer = flag("touches_buffer", transfers | multiplies | activates | loads | loads_tile)
        uses_parameters = flag("uses_parameters", self.loads_parameters | activates)

        # The source's overlap is found a cycle before the operand's.
        meets = self._meets_results(m, platform, compares)
        met = flag("met", meets)

        # MatrixMultiply and Convolve have their flags at the same bits.
        takes_tile = self._field(Opcode.CONVOLVE, "next_tile")
        enough = Mux(self._field(Opcode.CONVOLVE, "wide_weights"), self.has_two_queued_tiles, self.has_queued_tile)
        return [
            (FaultCode.UNIFIED_BUFFER_RANGE, touches_buffer & outside.unified_buffer),
            (FaultCode.UNIFIED_BUFFER_RANGE, reads_source & outside.source),
            (FaultCode.UNIFIED_BUFFER_RANGE, reads_operand & outside.operand),
            (FaultCode.ACCUMULATOR_RANGE, uses_accumulators & self._inside.outside_accumulators),
            (FaultCode.PARAMETER_RANGE, uses_parameters & self._outside_parameters(m)),
            (FaultCode.HOST_WINDOW, is_transfer & self._memory.outside),
            (FaultCode.WEIGHT_WINDOW, reads_weights & self._memory.outside),
            (FaultCode.NO_TILE, is_matrix & ~Mux(takes_tile, enough, self.has_tile)),
            (
                FaultCode.WEIGHT_QUEUE_FULL,
                (reads_weights & self.weight_queue_full) | (loads_tile & ~may_load),
            ),
            (FaultCode.UNIFIED_BUFFER_OVERLAP, (reads_source & met) | (reads_operand & meets)),
        ]

    def _outside_parameters(self, m: Module) -> Value:
        """Whether a parameter set does not exist; a cycle later. Activate, which uses one set, has its number where
        LOAD_PARAMETERS has its first one."""
        sets = self.config.parameter_sets
        width = sets.bit_length()
        first = register_field(self.word, Register.LOAD_PARAMETERS, "first")
        count = Mux(self.loads_parameters, register_field(self.word, Register.LOAD_PARAMETERS, "count"), 1)
        end = delayed(m, first[:width] + count[:width], 1, "parameters_end")
        beyond = delayed(m, first[width:].any() | count[width:].any(), 1, "parameters_beyond")
        return beyond | exceeds(end, sets)

    def _meets_results(self, m: Module, platform: object, is_operand: Value) -> Value:
        """Whether the unified buffer rows that Activate writes overlap those of its source, or of its operand."""
        ranges = self._inside.ranges
        width = len(ranges.unified_buffer_end) + 1

        def extended(value: Value) -> Value:
            return Cat(value[:width], Const(0, max(0, width - len(value))))

        before_end = chained_sum(
            m,
            platform,
            "first_to_end",
            [extended(value) for value in (ranges.unified_buffer_end,)]
            + [is_operand]
            + [extended(value) for value in (ranges.source, ranges.operand)],
            first=lambda end, is_operand, source, operand: ~end,
            second=lambda end, is_operand, source, operand: (source & ~is_operand) | (operand & is_operand),
            carry=1,
        )
        behind_begin = chained_sum(
            m,
            platform,
            "end_to_first",
            [extended(ranges.unified_buffer), is_operand, extended(ranges.source_end), extended(ranges.operand_end)],
            first=lambda first, is_operand, source, operand: ~first,
            second=lambda first, is_operand, source, operand: (source & ~is_operand) | (operand & is_operand),
        )
        return before_end[-1] & ~behind_begin[-1]
