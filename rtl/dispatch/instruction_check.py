"""Instruction check: decodes a word, finds what it touches and whether it is legal."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, Opcode, Operand, Register
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.format_check import FormatCheck
from openmxu.rtl.dispatch.instruction_fields import field_of, register_field
from openmxu.rtl.dispatch.instruction_ranges import InstructionRanges, ranges_layout

__all__ = ["InstructionCheck", "MemoryWindows"]


class MemoryWindows(data.StructLayout):
    """What the driver allows: byte addresses from ``base`` up to, but not including, ``limit``."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "host_base": config.host_address_width,
                "host_limit": config.host_address_width + 1,
                "weight_base": config.weight_address_width,
                "weight_limit": config.weight_address_width + 1,
            }
        )


class InstructionCheck(wiring.Component):
    """Checks what :class:`openmxu.arch.legality.LegalityChecker` checks, in its order.

    Takes one word at a time. The result comes five cycles later; for a plane seven more, for a strided transfer one
    more for each bit of its number of rows.

    Members
    -------
    start, new_word
        Check ``new_word``; only before the first word or while ``done``.
    word, opcode_is
        The word, and one bit for each of :data:`openmxu.arch.isa.FORMATS`, from the cycle after ``start``.
    configuration
        The configuration registers.
    windows
        See :class:`MemoryWindows`.
    has_tile, has_queued_tile, has_two_queued_tiles, weight_queue_full
        A tile is in the array; one is queued; two are; no further Read_Weights may be outstanding.
    ranges
        See :func:`~openmxu.rtl.dispatch.instruction_ranges.ranges_layout`: from two cycles before
        ``done`` on, ``origin`` a cycle later.
        Meaningful if the instruction is legal and touches them.
    ranged
        In the first cycle in which ``ranges`` are there, two before ``done``.
    loads_parameters, loads_table
        The word is a Set_Configuration that loads parameters, or the table.
    done
        The check is over and ``legal`` and ``fault`` tell its result, until the next ``start``.
    legal, fault
        Whether it is over and there is no fault; :class:`openmxu.arch.faults.FaultCode`.
    passes
        ``legal`` is set, or will be in the next cycle.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "new_word": In(isa.WORD_BITS),
                "word": Out(isa.WORD_BITS),
                "opcode_is": Out(len(FORMATS)),
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
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def weight_end_width(self) -> int:
        """Bits that hold the end of every range of weight memory whose address is in range."""
        return max(self.config.weight_address_width, 24 + ceil_log2(self.config.tile_bytes)) + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.format = format_ = FormatCheck(self.config)
        m.submodules.ranges = ranges = InstructionRanges(self.config)
        opcode_is = {format.opcode: self.opcode_is[index] for index, format in enumerate(FORMATS)}
        sets = self.new_word[:8] == Opcode.SET_CONFIGURATION
        number = field_of(self.new_word, Opcode.SET_CONFIGURATION, "register")
        with m.If(self.start):
            m.d.sync += [
                self.word.eq(self.new_word),
                self.loads_parameters.eq(sets & (number == Register.LOAD_PARAMETERS)),
                self.loads_table.eq(sets & (number == Register.LOAD_TABLE)),
            ]
            for opcode, bit in opcode_is.items():
                m.d.sync += bit.eq(self.new_word[:8] == opcode)
        for unit in (format_, ranges):
            m.d.comb += [
                unit.word.eq(self.word),
                unit.opcode_is.eq(self.opcode_is),
                unit.configuration.eq(self.configuration),
            ]
        m.d.comb += [
            ranges.take.eq(self.start),
            ranges.new_word.eq(self.new_word),
            self.ranges.eq(ranges.ranges),
        ]
        range_faults = self._range_faults(m, opcode_is)
        found = Signal(len(range_faults), reset_less=True)
        fault = Signal(FaultCode)
        for index, code in reversed(list(enumerate(range_faults))):
            with m.If(found[index]):
                m.d.comb += fault.eq(code)
        m.d.sync += self.fault.eq(Mux(format_.found, format_.fault, fault))

        # Registers settle one after the other: fields and products in DECODE and EXTENT, ends of ranges after that, the
        # faults that these show in RANGE, the result in JUDGE.
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.next = "DECODE"
            with m.State("DECODE"):
                m.d.comb += ranges.start.eq(1)
                m.next = "EXTENT"
            with m.State("EXTENT"):
                with m.If(ranges.done):
                    m.next = "RANGE"
            with m.State("RANGE"):
                m.d.comb += self.ranged.eq(1)
                m.d.sync += found.eq(Cat(range_faults.values()))
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

    def _range_faults(self, m: Module, opcode_is: dict[Opcode, Value]) -> dict[FaultCode, Value]:
        """The faults that depend on sizes, windows and queued tiles, the first one first."""
        config, ranges = self.config, self.ranges

        def meets_results(name: str) -> Value:
            return is_less(ranges[name], ranges.unified_buffer_end) & is_less(
                ranges.unified_buffer, ranges[f"{name}_end"]
            )

        def flag(name: str, condition: Value) -> Value:
            """What the word alone tells, in a register: comparisons come beside it."""
            return delayed(m, condition, 1, name)

        is_alternate = opcode_is[Opcode.READ_HOST_MEMORY_ALTERNATE] | opcode_is[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        transfers = is_alternate | opcode_is[Opcode.READ_HOST_MEMORY] | opcode_is[Opcode.WRITE_HOST_MEMORY]
        loads = self.loads_parameters | self.loads_table
        multiplies = opcode_is[Opcode.MATRIX_MULTIPLY] | opcode_is[Opcode.CONVOLVE]
        activates = opcode_is[Opcode.ACTIVATE]
        from_unified_buffer = self._field(Opcode.ACTIVATE, "from_unified_buffer")
        has_operand = self._field(Opcode.ACTIVATE, "operand") != Operand.NONE
        is_transfer = flag("is_transfer", transfers)
        is_matrix = flag("is_matrix", multiplies)
        is_activate = flag("is_activate", activates)
        reads_source = flag("reads_source", activates & from_unified_buffer)
        reads_operand = flag("reads_operand", activates & has_operand)
        uses_accumulators = flag("uses_accumulators", multiplies | (activates & ~from_unified_buffer))
        touches_buffer = flag("touches_buffer", transfers | multiplies | activates | loads)

        tiles = self._field(Opcode.READ_WEIGHTS, "tiles")
        weights = self._field(Opcode.READ_WEIGHTS, "weights")
        weight_end = Signal(self.weight_end_width)
        load_end = Signal(17)
        m.d.sync += [
            weight_end.eq(weights[: config.weight_address_width] + (tiles << ceil_log2(config.tile_bytes))),
            load_end.eq(
                register_field(self.word, Register.LOAD_PARAMETERS, "first")
                + register_field(self.word, Register.LOAD_PARAMETERS, "count")
            ),
        ]
        parameters = self._field(Opcode.ACTIVATE, "parameters")
        host_width, weight_width = config.host_address_width, config.weight_address_width
        reads_weights = opcode_is[Opcode.READ_WEIGHTS]
        # Where memory is read or written first, the word tells; only its end has to be found.
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        before_host = flag("before_host", transfers & is_less(host[:host_width], self.windows.host_base))
        before_weights = flag(
            "before_weights", reads_weights & is_less(weights[:weight_width], self.windows.weight_base)
        )
        beyond_host = flag("beyond_host", host[host_width:].any())
        beyond_weights = flag("beyond_weights", weights[weight_width:].any())
        outside_host = before_host | (is_transfer & (beyond_host | is_less(self.windows.host_limit, ranges.host_end)))
        outside_weights = before_weights | (
            reads_weights & (beyond_weights | is_less(self.windows.weight_limit, weight_end))
        )
        outside_parameters = (self.loads_parameters & is_less(config.parameter_sets, load_end)) | (
            is_activate & ~is_less(parameters, config.parameter_sets)
        )
        # MatrixMultiply and Convolve have their flags at the same places.
        takes_tile = self._field(Opcode.CONVOLVE, "next_tile")
        enough = Mux(self._field(Opcode.CONVOLVE, "wide_weights"), self.has_two_queued_tiles, self.has_queued_tile)
        rows = config.unified_buffer_rows
        return {
            FaultCode.UNIFIED_BUFFER_RANGE: (touches_buffer & is_less(rows, ranges.unified_buffer_end))
            | (reads_source & is_less(rows, ranges.source_end))
            | (reads_operand & is_less(rows, ranges.operand_end)),
            FaultCode.ACCUMULATOR_RANGE: uses_accumulators & is_less(config.accumulator_rows, ranges.source_end),
            FaultCode.PARAMETER_RANGE: outside_parameters,
            FaultCode.HOST_WINDOW: outside_host,
            FaultCode.WEIGHT_WINDOW: outside_weights,
            FaultCode.NO_TILE: is_matrix & ~Mux(takes_tile, enough, self.has_tile),
            FaultCode.WEIGHT_QUEUE_FULL: reads_weights & self.weight_queue_full,
            FaultCode.UNIFIED_BUFFER_OVERLAP: (reads_source & meets_results("source"))
            | (reads_operand & meets_results("operand")),
        }
