"""Instruction check: decodes a word, finds what it touches and whether it is legal."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, Format, Opcode, OutputFormat, Register
from openmxu.arch.legality import PARAMETER_ROWS

__all__ = ["InstructionCheck", "MemoryWindows", "field_of", "slice_field"]


def field_of(word: Value, opcode: Opcode, name: str) -> Value:
    """A field of an instruction word."""
    format = next(format for format in FORMATS if format.opcode == opcode)
    return slice_field(word, format.field(name))


def slice_field(word: Value, field: isa.Field) -> Value:
    """A field of a word, or of a register's value."""
    bits = word[field.offset : field.offset + field.width]
    return bits.as_signed() if field.signed else bits


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

    Takes one word at a time. The result comes four cycles later, for a strided transfer some more: the distance of its
    rows is multiplied bit by bit.

    Members
    -------
    start, new_word
        Check ``new_word``; only before the first word or while ``done``.
    word, opcode_is
        The word, and one bit for each of :data:`openmxu.arch.isa.FORMATS`, from the cycle after ``start``.
    host_stride
        The HOST_STRIDE register.
    windows
        See :class:`MemoryWindows`.
    has_tile, has_queued_tile, weight_queue_full
        A tile is in the array; one is queued; no further Read_Weights may be outstanding.
    unified_buffer, unified_buffer_end, accumulator, accumulator_end, host, host_end
        What the instruction touches, from ``ranges_done`` on; ends are exclusive. Meaningful if the instruction is
        legal and touches it.
    ranges_done
        Set for one cycle before ``done``.
    done
        The check is over and ``fault`` and ``legal`` tell its result, until the next ``start``.
    fault, legal
        :class:`openmxu.arch.faults.FaultCode`; whether it is ``NONE``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "new_word": In(isa.WORD_BITS),
                "word": Out(isa.WORD_BITS),
                "opcode_is": Out(len(FORMATS)),
                "host_stride": In(32),
                "windows": In(MemoryWindows(config)),
                "has_tile": In(1),
                "has_queued_tile": In(1),
                "weight_queue_full": In(1),
                "ranges_done": Out(1),
                "done": Out(1),
                "fault": Out(FaultCode),
                "legal": Out(1),
                "unified_buffer": Out(config.unified_buffer_address_width),
                "unified_buffer_end": Out(36),
                "accumulator": Out(config.accumulator_address_width),
                "accumulator_end": Out(33),
                "host": Out(64),
                "host_end": Out(self.host_end_width),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def rows_width(self) -> int:
        """Bits of a number of rows that fits the unified buffer."""
        return self.config.unified_buffer_address_width + 1

    @property
    def host_end_width(self) -> int:
        """Bits that hold the end of every host range whose address and number of rows are in range."""
        return max(self.config.host_address_width, self.rows_width + 32) + 1

    @property
    def weight_end_width(self) -> int:
        """Bits that hold the end of every range of weight memory whose address is in range."""
        return max(self.config.weight_address_width, 24 + ceil_log2(self.config.tile_bytes)) + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        opcode_is = {format.opcode: self.opcode_is[index] for index, format in enumerate(FORMATS)}
        with m.If(self.start):
            m.d.sync += self.word.eq(self.new_word)
            for opcode, bit in opcode_is.items():
                m.d.sync += bit.eq(self.new_word[:8] == opcode)

        is_alternate = opcode_is[Opcode.READ_HOST_MEMORY_ALTERNATE] | opcode_is[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        format_fault = self._format_fault(m, opcode_is)
        extent, multiply, multiplied = self._host_extent(m, is_alternate)
        self._ranges(m, opcode_is, extent)
        range_fault = self._range_fault(m, opcode_is, is_alternate)

        # Registers settle one after the other: fields and extent in DECODE, ends of ranges in EXTENT, comparisons in
        # RANGE.
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.start):
                    m.next = "DECODE"
            with m.State("DECODE"):
                m.d.comb += multiply.eq(1)
                m.next = "EXTENT"
            with m.State("EXTENT"):
                with m.If(multiplied):
                    m.next = "RANGE"
            with m.State("RANGE"):
                m.d.comb += self.ranges_done.eq(1)
                m.d.sync += [
                    self.fault.eq(Mux(format_fault != FaultCode.NONE, format_fault, range_fault)),
                    self.legal.eq((format_fault == FaultCode.NONE) & (range_fault == FaultCode.NONE)),
                ]
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                with m.If(self.start):
                    m.next = "DECODE"
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _register_field(self, register: Register, name: str) -> Value:
        return slice_field(self._field(Opcode.SET_CONFIGURATION, "value"), REGISTERS[register].field(name))

    def _format_fault(self, m: Module, opcode_is: dict[Opcode, Value]) -> Signal:
        """The faults that the word alone shows."""
        unknown, reserved, unimplemented = Signal(), Signal(), Signal()
        m.d.comb += [
            unknown.eq(~Cat(opcode_is.values()).any()),
            reserved.eq(_any(opcode_is[f.opcode] & self._has_reserved_bits(f) for f in FORMATS)),
            unimplemented.eq(_any(opcode_is[f.opcode] & self._is_unimplemented(f) for f in FORMATS)),
        ]
        illegal = self._illegal_value(opcode_is)
        fault = Signal(FaultCode)
        with m.If(unknown):
            m.d.sync += fault.eq(FaultCode.UNKNOWN_OPCODE)
        with m.Elif(reserved):
            m.d.sync += fault.eq(FaultCode.RESERVED_BITS)
        with m.Elif(unimplemented):
            m.d.sync += fault.eq(FaultCode.UNIMPLEMENTED)
        with m.Elif(illegal):
            m.d.sync += fault.eq(FaultCode.ILLEGAL_VALUE)
        with m.Else():
            m.d.sync += fault.eq(FaultCode.NONE)
        return fault

    def _has_reserved_bits(self, format: Format) -> Value:
        mask = ~format.defined_mask & ((1 << isa.WORD_BITS) - 1)
        return (self.word & mask).any()

    def _is_unimplemented(self, format: Format) -> Value:
        if not format.implemented:
            return Const(1)
        conditions = [
            ~slice_field(self.word, field).matches(*field.implemented)
            for field in format.fields
            if field.implemented is not None
        ]
        if format.opcode == Opcode.SET_CONFIGURATION:
            number = self._field(Opcode.SET_CONFIGURATION, "register")
            conditions += [number == register.number for register in REGISTERS if not register.implemented]
        return _any(conditions)

    def _illegal_value(self, opcode_is: dict[Opcode, Value]) -> Value:
        host_low = ceil_log2(self.config.host_alignment)
        weight_low = ceil_log2(self.config.weight_alignment)
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        transfer = (self._field(Opcode.READ_HOST_MEMORY, "rows") == 0) | host[:host_low].any()
        weights = (self._field(Opcode.READ_WEIGHTS, "tiles") == 0) | self._field(Opcode.READ_WEIGHTS, "weights")[
            :weight_low
        ].any()
        conditions = {
            Opcode.SYNCHRONIZE: self._field(Opcode.SYNCHRONIZE, "units")[len(isa.UNITS) :].any(),
            Opcode.SET_CONFIGURATION: self._illegal_configuration(host_low),
            Opcode.READ_HOST_MEMORY: transfer,
            Opcode.READ_HOST_MEMORY_ALTERNATE: transfer,
            Opcode.WRITE_HOST_MEMORY: transfer,
            Opcode.WRITE_HOST_MEMORY_ALTERNATE: transfer,
            Opcode.READ_WEIGHTS: weights,
            Opcode.MATRIX_MULTIPLY: self._field(Opcode.MATRIX_MULTIPLY, "rows") == 0,
            Opcode.ACTIVATE: self._field(Opcode.ACTIVATE, "rows") == 0,
        }
        return _any(opcode_is[opcode] & condition for opcode, condition in conditions.items())

    def _illegal_configuration(self, host_low: int) -> Value:
        number = self._field(Opcode.SET_CONFIGURATION, "register")
        value = self._field(Opcode.SET_CONFIGURATION, "value")
        conditions = [number >= len(REGISTERS)]
        for register in REGISTERS:
            if register.implemented:
                reserved = value & (~register.used_mask & ((1 << 64) - 1))
                conditions.append((number == register.number) & reserved.any())
        for register in (Register.INPUT_FORMAT, Register.WEIGHT_FORMAT):
            zero_point = self._register_field(register, "zero_point")
            is_signed = self._register_field(register, "signed")
            upper = zero_point[8:]
            fits = Mux(is_signed, Mux(zero_point[7], upper.all(), ~upper.any()), ~upper.any())
            conditions.append((number == register) & ~fits)
        stride = self._register_field(Register.HOST_STRIDE, "stride")
        conditions.append((number == Register.HOST_STRIDE) & stride[:host_low].any())
        count = self._register_field(Register.LOAD_PARAMETERS, "count")
        conditions.append((number == Register.LOAD_PARAMETERS) & (count == 0))
        return _any(conditions)

    def _host_extent(self, m: Module, is_alternate: Value) -> tuple[Signal, Signal, Signal]:
        """Bytes that a host transfer spans; for a strided one (rows - 1) * stride + S, one bit of rows per cycle."""
        start, ready = Signal(), Signal()
        rows = self._field(Opcode.READ_HOST_MEMORY, "rows")[: self.rows_width]
        extent = Signal(self.host_end_width)
        left = Signal(self.rows_width)
        weight = Signal(self.host_end_width)
        m.d.comb += ready.eq(~is_alternate | (left == 0))
        with m.If(start):
            m.d.sync += [
                left.eq(rows - 1),
                weight.eq(self.host_stride),
                extent.eq(Mux(is_alternate, self.config.size, rows << ceil_log2(self.config.size))),
            ]
        with m.Elif(~ready):
            m.d.sync += [left.eq(left >> 1), weight.eq(weight << 1)]
            with m.If(left[0]):
                m.d.sync += extent.eq(extent + weight)
        return extent, start, ready

    def _ranges(self, m: Module, opcode_is: dict[Opcode, Value], extent: Value) -> None:
        first, rows = Signal(24), Signal(35)
        with m.If(opcode_is[Opcode.MATRIX_MULTIPLY]):
            m.d.comb += rows.eq(self._field(Opcode.MATRIX_MULTIPLY, "rows"))
        with m.Elif(opcode_is[Opcode.ACTIVATE]):
            is_int32 = self._field(Opcode.ACTIVATE, "output") == OutputFormat.INT32
            activate_rows = self._field(Opcode.ACTIVATE, "rows")
            m.d.comb += rows.eq(Mux(is_int32, activate_rows << 2, activate_rows))
        with m.Elif(opcode_is[Opcode.SET_CONFIGURATION]):
            count = self._register_field(Register.LOAD_PARAMETERS, "count")
            m.d.comb += rows.eq(count << ceil_log2(PARAMETER_ROWS))
        with m.Else():
            m.d.comb += rows.eq(self._field(Opcode.READ_HOST_MEMORY, "rows"))
        with m.If(opcode_is[Opcode.SET_CONFIGURATION]):
            m.d.comb += first.eq(self._register_field(Register.LOAD_PARAMETERS, "unified_buffer"))
        with m.Else():
            m.d.comb += first.eq(self._field(Opcode.MATRIX_MULTIPLY, "unified_buffer"))
        accumulator = self._field(Opcode.MATRIX_MULTIPLY, "accumulator")
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        m.d.sync += [
            self.unified_buffer.eq(first),
            self.unified_buffer_end.eq(first + rows),
            self.accumulator.eq(accumulator),
            self.accumulator_end.eq(accumulator + self._field(Opcode.MATRIX_MULTIPLY, "rows")),
            self.host.eq(host),
            self.host_end.eq(host[: self.config.host_address_width] + extent),
        ]

    def _range_fault(self, m: Module, opcode_is: dict[Opcode, Value], is_alternate: Value) -> Signal:
        """The faults that depend on sizes, windows and queued tiles."""
        config = self.config
        is_transfer = is_alternate | opcode_is[Opcode.READ_HOST_MEMORY] | opcode_is[Opcode.WRITE_HOST_MEMORY]
        is_load = opcode_is[Opcode.SET_CONFIGURATION] & (
            self._field(Opcode.SET_CONFIGURATION, "register") == Register.LOAD_PARAMETERS
        )
        computes = opcode_is[Opcode.MATRIX_MULTIPLY] | opcode_is[Opcode.ACTIVATE]

        tiles = self._field(Opcode.READ_WEIGHTS, "tiles")
        weights = self._field(Opcode.READ_WEIGHTS, "weights")
        weight_end = Signal(self.weight_end_width)
        load_end = Signal(17)
        m.d.sync += [
            weight_end.eq(weights[: config.weight_address_width] + (tiles << ceil_log2(config.tile_bytes))),
            load_end.eq(
                self._register_field(Register.LOAD_PARAMETERS, "first")
                + self._register_field(Register.LOAD_PARAMETERS, "count")
            ),
        ]
        parameters = self._field(Opcode.ACTIVATE, "parameters")
        host_width, weight_width = config.host_address_width, config.weight_address_width
        outside_host = (
            self.host[host_width:].any()
            | (self.host[:host_width] < self.windows.host_base)
            | (self.host_end > self.windows.host_limit)
        )
        outside_weights = (
            weights[weight_width:].any()
            | (weights[:weight_width] < self.windows.weight_base)
            | (weight_end > self.windows.weight_limit)
        )
        takes_tile = self._field(Opcode.MATRIX_MULTIPLY, "next_tile")
        conditions = {
            FaultCode.UNIFIED_BUFFER_RANGE: (is_transfer | computes | is_load)
            & (self.unified_buffer_end > config.unified_buffer_rows),
            FaultCode.ACCUMULATOR_RANGE: computes & (self.accumulator_end > config.accumulator_rows),
            FaultCode.PARAMETER_RANGE: (is_load & (load_end > config.parameter_sets))
            | (opcode_is[Opcode.ACTIVATE] & (parameters >= config.parameter_sets)),
            FaultCode.HOST_WINDOW: is_transfer & outside_host,
            FaultCode.WEIGHT_WINDOW: opcode_is[Opcode.READ_WEIGHTS] & outside_weights,
            FaultCode.NO_TILE: opcode_is[Opcode.MATRIX_MULTIPLY]
            & ~Mux(takes_tile, self.has_queued_tile, self.has_tile),
            FaultCode.WEIGHT_QUEUE_FULL: opcode_is[Opcode.READ_WEIGHTS] & self.weight_queue_full,
        }
        # One flag for each fault, so that the comparisons end in registers of their own.
        flags = Signal(len(conditions))
        fault = Signal(FaultCode)
        m.d.comb += flags.eq(Cat(conditions.values()))
        for index, code in reversed(list(enumerate(conditions))):
            with m.If(flags[index]):
                m.d.comb += fault.eq(code)
        return fault


def _any(conditions) -> Value:
    result = Const(0)
    for condition in conditions:
        result = result | condition
    return result
