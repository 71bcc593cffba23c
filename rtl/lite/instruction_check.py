"""Instruction check of the lite profile."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Format, Opcode, Register
from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field

__all__ = ["LiteInstructionCheck"]

_TRANSFERS = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)


class LiteInstructionCheck(wiring.Component):
    """Checks what :class:`openmxu.arch.legality.LegalityChecker` checks, for one word that stands still.

    Members
    -------
    word
        The instruction.
    opcode_is
        One bit for each of the profile's formats, a cycle after the word.
    windows
        See :class:`~openmxu.rtl.dispatch.check.instruction_check.MemoryWindows`.
    has_tile, has_queued_tile, weight_queue_full
        A tile is in the array; one is queued; no further Read_Weights may be outstanding.
    enable, fault
        :class:`openmxu.arch.faults.FaultCode`, ``latency`` cycles after the word if they are enabled; then it stays.
    """

    latency = 2

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "word": In(isa.WORD_BITS),
                "opcode_is": Out(len(config.features.formats)),
                "windows": In(MemoryWindows(config)),
                "has_tile": In(1),
                "has_queued_tile": In(1),
                "weight_queue_full": In(1),
                "enable": In(1),
                "fault": Out(FaultCode),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        formats = self.config.features.formats
        m.d.sync += [self.opcode_is[index].eq(self.word[:8] == f.opcode) for index, f in enumerate(formats)]
        is_ = by_opcode(self.opcode_is, self.config)

        # Bytes with a bit that is set: what is reserved, and what counts something, is made of bytes.
        is_set = Signal(isa.WORD_BYTES)
        m.d.sync += is_set.eq(Cat(self.word.word_select(place, 8).any() for place in range(isa.WORD_BYTES)))

        conditions = {
            FaultCode.UNKNOWN_OPCODE: ~self.opcode_is.any(),
            FaultCode.RESERVED_BITS: _any(is_[f.opcode] & self._reserved(f, is_set) for f in formats),
            FaultCode.ILLEGAL_VALUE: self._illegal_value(is_, is_set),
            **self._memory_conditions(m, is_),
            FaultCode.NO_TILE: is_[Opcode.MATRIX_MULTIPLY]
            & ~Mux(self._field(Opcode.MATRIX_MULTIPLY, "next_tile"), self.has_queued_tile, self.has_tile),
            FaultCode.WEIGHT_QUEUE_FULL: is_[Opcode.READ_WEIGHTS] & self.weight_queue_full,
        }
        fault = Signal(FaultCode)
        for code in sorted(conditions, reverse=True):
            with m.If(conditions[code]):
                m.d.comb += fault.eq(code)
        with m.If(self.enable):
            m.d.sync += self.fault.eq(fault)
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _reserved(self, format: Format, is_set: Signal) -> Value:
        """Whether a bit of no field is set."""
        conditions = [Const(0)]
        for place in range(1, isa.WORD_BYTES):
            mask = ~format.defined_mask >> (8 * place) & 0xFF
            whole = is_set[place] if mask == 0xFF else (self.word.word_select(place, 8) & mask).any()
            if mask:
                conditions.append(whole)
        return _any(conditions)

    def _illegal_value(self, is_: dict[Opcode, Value], is_set: Signal) -> Value:
        host_low = ceil_log2(self.config.host_alignment)
        weight_low = ceil_log2(self.config.weight_alignment)
        transfer = _any(is_[opcode] for opcode in _TRANSFERS)
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        weights = self._field(Opcode.READ_WEIGHTS, "weights")
        counts = (
            (transfer, Opcode.READ_HOST_MEMORY, "rows"),
            (is_[Opcode.READ_WEIGHTS], Opcode.READ_WEIGHTS, "tiles"),
            (is_[Opcode.MATRIX_MULTIPLY], Opcode.MATRIX_MULTIPLY, "rows"),
            (is_[Opcode.ACTIVATE], Opcode.ACTIVATE, "rows"),
        )
        return _any(
            (
                *(condition & ~_bytes_of(is_set, _isa_field(opcode, name)).any() for condition, opcode, name in counts),
                transfer & host[:host_low].any(),
                is_[Opcode.READ_WEIGHTS] & weights[:weight_low].any(),
                is_[Opcode.SYNCHRONIZE] & self._field(Opcode.SYNCHRONIZE, "units")[len(isa.UNITS) :].any(),
                is_[Opcode.SET_CONFIGURATION] & self._illegal_configuration(),
            )
        )

    def _illegal_configuration(self) -> Value:
        registers = self.config.features.registers
        number = self._field(Opcode.SET_CONFIGURATION, "register")
        value = self._field(Opcode.SET_CONFIGURATION, "value")
        conditions = [~number.matches(*(register.number for register in registers))]
        for register in registers:
            reserved = value & (~register.used_mask & ((1 << 64) - 1))
            conditions.append((number == register.number) & reserved.any())
        # Both operand formats have their fields at the same places.
        zero_point = register_field(self.word, Register.INPUT_FORMAT, "zero_point")
        is_negative = register_field(self.word, Register.INPUT_FORMAT, "signed") & zero_point[7]
        fits = Mux(is_negative, zero_point[8:].all(), ~zero_point[8:].any())
        conditions.append(number.matches(Register.INPUT_FORMAT, Register.WEIGHT_FORMAT) & ~fits)
        count = register_field(self.word, Register.LOAD_PARAMETERS, "count")
        conditions.append((number == Register.LOAD_PARAMETERS) & ~count.any())
        return _any(conditions)

    def _memory_conditions(self, m: Module, is_: dict[Opcode, Value]) -> dict[FaultCode, Value]:
        """Ends of ranges go through registers: an addition and a comparison in one cycle each."""
        config = self.config
        transfer = _any(is_[opcode] for opcode in _TRANSFERS)
        multiply, activate = is_[Opcode.MATRIX_MULTIPLY], is_[Opcode.ACTIVATE]
        opcode = self.word[:8]
        configure = opcode == Opcode.SET_CONFIGURATION
        number = self._field(Opcode.SET_CONFIGURATION, "register")
        load = is_[Opcode.SET_CONFIGURATION] & (number == Register.LOAD_PARAMETERS)

        first_set = self._field(Opcode.ACTIVATE, "parameters")
        sets = register_field(self.word, Register.LOAD_PARAMETERS, "count")
        rows = {
            Opcode.MATRIX_MULTIPLY: self._field(Opcode.MATRIX_MULTIPLY, "rows"),
            Opcode.ACTIVATE: self._field(Opcode.ACTIVATE, "rows"),
            Opcode.SET_CONFIGURATION: Cat(Const(0, ceil_log2(PARAMETER_ROWS)), sets),
            None: self._field(Opcode.READ_HOST_MEMORY, "rows"),
        }
        buffer_first = Mux(
            configure,
            register_field(self.word, Register.LOAD_PARAMETERS, "unified_buffer"),
            self._field(Opcode.READ_HOST_MEMORY, "unified_buffer"),
        )
        beyond_buffer = _beyond(m, buffer_first, rows, opcode, config.unified_buffer_rows)
        sums = {Opcode.ACTIVATE: rows[Opcode.ACTIVATE], None: rows[Opcode.MATRIX_MULTIPLY]}
        source = Mux(
            opcode == Opcode.ACTIVATE,
            self._field(Opcode.ACTIVATE, "source"),
            self._field(Opcode.MATRIX_MULTIPLY, "accumulator"),
        )
        beyond_accumulators = _beyond(m, source, sums, opcode, config.accumulator_rows)
        # The parameter sets of both instructions are at the same place.
        beyond_sets = _beyond(m, first_set, {Opcode.ACTIVATE: Const(1, 1), None: sets}, opcode, config.parameter_sets)
        outside = self._outside_window(m, opcode == Opcode.READ_WEIGHTS)
        return {
            FaultCode.UNIFIED_BUFFER_RANGE: (transfer | multiply | activate | load) & beyond_buffer,
            FaultCode.ACCUMULATOR_RANGE: (multiply | activate) & beyond_accumulators,
            FaultCode.PARAMETER_RANGE: (activate | load) & beyond_sets,
            FaultCode.HOST_WINDOW: transfer & outside,
            FaultCode.WEIGHT_WINDOW: is_[Opcode.READ_WEIGHTS] & outside,
        }

    def _outside_window(self, m: Module, is_weights: Value) -> Value:
        """Whether bytes lie outside the window of their memory, a cycle later."""
        config, windows = self.config, self.windows
        host_width, weight_width = config.host_address_width, config.weight_address_width
        width = max(host_width, weight_width)
        address = self._field(Opcode.READ_HOST_MEMORY, "host")
        length = Signal(width + 1)
        too_long = Signal()
        rows, tiles = self._field(Opcode.READ_HOST_MEMORY, "rows"), self._field(Opcode.READ_WEIGHTS, "tiles")
        base, limit = Signal(width), Signal(width + 1)
        is_high = Signal()
        with m.If(is_weights):
            long = tiles << ceil_log2(config.tile_bytes)
            m.d.comb += [
                length.eq(long),
                too_long.eq(long[width + 1 :].any()),
                is_high.eq(address[weight_width:].any()),
            ]
            m.d.comb += [base.eq(windows.weight_base), limit.eq(windows.weight_limit)]
        with m.Else():
            bytes_ = Cat(Const(0, ceil_log2(config.size)), rows)
            m.d.comb += [is_high.eq(address[host_width:].any()), length.eq(bytes_)]
            m.d.comb += [too_long.eq(bytes_[width + 1 :].any())]
            m.d.comb += [base.eq(windows.host_base), limit.eq(windows.host_limit)]
        end = Signal(width + 2)
        elsewhere = Signal()
        m.d.sync += [
            end.eq(address[:width] + length),
            elsewhere.eq(is_high | too_long | is_less(address[:width], base)),
        ]
        return elsewhere | is_less(limit, end)


def _isa_field(opcode: Opcode, name: str) -> isa.Field:
    """A field of an instruction."""
    return next(format for format in isa.FORMATS if format.opcode == opcode).field(name)


def _bytes_of(is_set: Signal, field: isa.Field) -> Value:
    """The bits of ``is_set`` for a field of whole bytes."""
    assert field.offset % 8 == field.width % 8 == 0
    return is_set[field.offset // 8 : (field.offset + field.width) // 8]


def _beyond(m: Module, first: Value, counts: dict[Opcode | None, Value], opcode: Value, places: int) -> Value:
    """Whether ``first`` plus one of the counts, by opcode, is more than ``places``; a cycle later."""
    width = places.bit_length()
    count = Signal(width)
    is_long = Signal()
    with m.Switch(opcode):
        for name, value in counts.items():
            with m.Default() if name is None else m.Case(name):
                m.d.comb += [count.eq(value), is_long.eq(value[width:].any())]
    end = Signal(width + 1)
    is_far = Signal()
    m.d.sync += [end.eq(first[:width] + count), is_far.eq(is_long | first[width:].any())]
    return is_far | is_less(places, end)


def _any(conditions: Iterable[Value]) -> Value:
    return reduce(or_, conditions)
