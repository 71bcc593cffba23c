"""Instruction ranges: which rows and bytes an instruction touches."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.arch.isa import FORMATS, Opcode, OutputFormat, Pooling, Register
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.instruction_fields import field_of, register_field
from openmxu.rtl.dispatch.plane_products import PlaneProducts

__all__ = ["InstructionRanges", "host_end_width", "ranges_layout", "source_width"]


def source_width(config: Config) -> int:
    """Bits of a row address of the accumulators or of the unified buffer, whichever has more rows."""
    return max(config.unified_buffer_address_width, config.accumulator_address_width)


def _rows_width(config: Config) -> int:
    """Bits of a number of rows that fits the unified buffer."""
    return config.unified_buffer_address_width + 1


def host_end_width(config: Config) -> int:
    """Bits that hold the end of every host range whose address and number of rows are in range."""
    return max(config.host_address_width, _rows_width(config) + 32) + 1


def ranges_layout(config: Config) -> data.StructLayout:
    """What an instruction touches, wide enough to tell what does not fit; all ends are exclusive.

    Members
    -------
    unified_buffer, unified_buffer_end
        Rows that a transfer, a load or the matrix unit reads, or that a transfer or Activate writes.
    source, source_end
        Accumulator rows, or the unified buffer rows that Activate reads instead.
    operand, operand_end
        Unified buffer rows of Activate's second operand.
    host, host_end
        Bytes of host memory; ``host`` within its addresses.
    is_plane, plane_y, plane_x
        Whether the source is a plane, and the position in it of the first output.
    origin
        Row of that position, modulo the addresses; without a plane the first row.
    pitch
        Positions from one row of outputs to the next one.
    outputs
        Rows of sums that the matrix unit makes.
    """
    return data.StructLayout(
        {
            "unified_buffer": 24,
            "unified_buffer_end": 36,
            "source": 24,
            "source_end": 36,
            "operand": 24,
            "operand_end": 27,
            "host": config.host_address_width,
            "host_end": host_end_width(config),
            "is_plane": 1,
            "plane_y": signed(17),
            "plane_x": signed(17),
            "origin": source_width(config),
            "pitch": 24,
            "outputs": 32,
        }
    )


class InstructionRanges(wiring.Component):
    """Finds the ranges of one word; where a plane or a strided transfer needs products, they take some cycles.

    Members
    -------
    word, opcode_is, configuration
        The instruction, one bit for each of :data:`openmxu.arch.isa.FORMATS`, the configuration registers.
    take, new_word
        The word comes in the next cycle; this is it.
    start, done
        The word is new; ``done``, which counts from the next cycle on, tells that its ranges will be there in the cycle
        after it, ``origin`` one cycle later.
    ranges
        See :func:`ranges_layout`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "word": In(isa.WORD_BITS),
                "opcode_is": In(len(FORMATS)),
                "configuration": In(configuration_layout()),
                "take": In(1),
                "new_word": In(isa.WORD_BITS),
                "start": In(1),
                "done": Out(1),
                "ranges": Out(ranges_layout(config)),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.products = products = PlaneProducts()
        opcode_is = {format.opcode: self.opcode_is[index] for index, format in enumerate(FORMATS)}
        is_convolve = opcode_is[Opcode.CONVOLVE]
        is_plane, is_kind = self._find_kind(m)
        extent, extent_done = self._host_extent(m, opcode_is)
        m.d.comb += [
            self.ranges.is_plane.eq(is_plane),
            products.start.eq(self.start & is_plane),
            self.ranges.pitch.eq(products.pitch),
            self.ranges.outputs.eq(
                Mux(is_convolve, products.outputs, self._field(Opcode.MATRIX_MULTIPLY, "rows")),
            ),
            self.done.eq(products.done & extent_done),
        ]
        self._connect_plane(m, products, is_convolve)
        self._unified_buffer_rows(m, is_kind, products)
        self._source_rows(m, opcode_is, products)

        operand = self.configuration.operand_address.unified_buffer
        operand_rows = _twice_if(self.configuration.operand_format.wide, self._field(Opcode.ACTIVATE, "rows"))
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        operand_rows_found = Signal(25, reset_less=True)
        m.d.sync += [
            operand_rows_found.eq(operand_rows),
            self.ranges.operand.eq(operand),
            self.ranges.operand_end.eq(self.ranges.operand + operand_rows_found),
            self.ranges.host.eq(host),
            self.ranges.host_end.eq(host[: self.config.host_address_width] + extent),
        ]
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _connect_plane(self, m: Module, products: PlaneProducts, is_convolve: Value) -> None:
        factors = products.factors
        plane, pooled = self.configuration.convolution_plane, self.configuration.pooling_plane
        window = self.configuration.pooling_window
        m.d.comb += [
            factors.output_height.eq(self._field(Opcode.CONVOLVE, "height")),
            factors.output_width.eq(self._field(Opcode.CONVOLVE, "width")),
            factors.y.eq(self.ranges.plane_y),
        ]
        with m.If(is_convolve):
            m.d.comb += [
                self.ranges.plane_y.eq(self._field(Opcode.CONVOLVE, "dy")),
                self.ranges.plane_x.eq(self._field(Opcode.CONVOLVE, "dx")),
                factors.height.eq(plane.height),
                factors.width.eq(plane.width),
                factors.stride_y.eq(plane.stride_y),
            ]
        with m.Else():
            m.d.comb += [
                self.ranges.plane_y.eq(-window.pad_top),
                self.ranges.plane_x.eq(-window.pad_left),
                factors.height.eq(pooled.height),
                factors.width.eq(pooled.width),
                factors.stride_y.eq(window.stride_y),
            ]

    def _find_kind(self, m: Module) -> tuple[Signal, dict[str, Signal]]:
        """Whether the instruction walks over a plane, and which one of the ways to count unified buffer rows is its.

        Registers that are set with the word: this takes as long as what follows from it.
        """
        new, code = self.new_word, self.new_word[:8]
        activates, sets = code == Opcode.ACTIVATE, code == Opcode.SET_CONFIGURATION
        output = field_of(new, Opcode.ACTIVATE, "output")
        number = field_of(new, Opcode.SET_CONFIGURATION, "register")
        pools = activates & (field_of(new, Opcode.ACTIVATE, "pooling") != Pooling.NONE)
        is_int32, is_word = output == OutputFormat.INT32, output == OutputFormat.WORD
        kinds = {
            "multiplies": code == Opcode.MATRIX_MULTIPLY,
            "convolves": code == Opcode.CONVOLVE,
            "makes_int32": activates & is_int32,
            "makes_words": activates & is_word,
            "makes_bytes": activates & ~is_int32 & ~is_word,
            "loads_table": sets & (number == Register.LOAD_TABLE),
            "loads_parameters": sets & (number != Register.LOAD_TABLE),
        }
        is_plane = Signal()
        is_kind = {name: Signal(name=name) for name in kinds} | {"transfers": Signal(name="transfers")}
        with m.If(self.take):
            m.d.sync += [
                is_plane.eq((code == Opcode.CONVOLVE) | pools),
                *(is_kind[name].eq(condition) for name, condition in kinds.items()),
                is_kind["transfers"].eq(~Cat(kinds.values()).any()),
            ]
        return is_plane, is_kind

    def _unified_buffer_rows(self, m: Module, is_kind: dict[str, Signal], products: PlaneProducts) -> None:
        first, rows = Signal(24), Signal(35)
        results = self._field(Opcode.ACTIVATE, "rows")
        multiplied = self._field(Opcode.MATRIX_MULTIPLY, "rows")
        count = register_field(self.word, Register.LOAD_PARAMETERS, "count")
        counts = {
            "multiplies": _twice_if(self._field(Opcode.MATRIX_MULTIPLY, "wide_input"), multiplied),
            "convolves": _twice_if(self._field(Opcode.CONVOLVE, "wide_input"), products.positions),
            "makes_int32": results << 2,
            "makes_words": results << 1,
            "makes_bytes": results,
            "loads_table": Const(table_rows(self.config.size)),
            "loads_parameters": count << ceil_log2(PARAMETER_ROWS),
            "transfers": self._field(Opcode.READ_HOST_MEMORY, "rows"),
        }
        loads = is_kind["loads_table"] | is_kind["loads_parameters"]
        m.d.comb += [
            # One of them is; no choice goes through another.
            rows.eq(reduce(or_, (Mux(is_kind[name], value, 0) for name, value in counts.items()))),
            # Both loads have the address at the same place, and so have all others.
            first.eq(
                Mux(
                    loads,
                    register_field(self.word, Register.LOAD_TABLE, "unified_buffer"),
                    self._field(Opcode.MATRIX_MULTIPLY, "unified_buffer"),
                )
            ),
        ]
        # How many rows there are is found in one cycle, and where they end in the next; the products that matter here
        # come before the last one.
        rows_found = Signal.like(rows, reset_less=True)
        m.d.sync += [
            rows_found.eq(rows),
            self.ranges.unified_buffer.eq(first),
            self.ranges.unified_buffer_end.eq(self.ranges.unified_buffer + rows_found),
        ]

    def _source_rows(self, m: Module, opcode_is: dict[Opcode, Value], products: PlaneProducts) -> None:
        first, rows = Signal(24), Signal(33)
        origin_base = Signal(24)
        is_wide = Signal()
        with m.If(opcode_is[Opcode.ACTIVATE]):
            results = self._field(Opcode.ACTIVATE, "rows")
            m.d.comb += [
                first.eq(self._field(Opcode.ACTIVATE, "source")),
                is_wide.eq(self._field(Opcode.ACTIVATE, "from_unified_buffer") & self.configuration.source_format.wide),
                rows.eq(_twice_if(is_wide, Mux(self.ranges.is_plane, products.positions, results))),
                origin_base.eq(first),
            ]
        with m.Else():
            m.d.comb += [
                first.eq(self._field(Opcode.MATRIX_MULTIPLY, "accumulator")),
                is_wide.eq(self._field(Opcode.MATRIX_MULTIPLY, "wide_input")),
                rows.eq(self.ranges.outputs),
                origin_base.eq(self._field(Opcode.MATRIX_MULTIPLY, "unified_buffer")),
            ]
        rows_found = Signal.like(rows, reset_less=True)
        base = Signal(source_width(self.config), reset_less=True)
        offset = Signal.like(base, reset_less=True)
        m.d.sync += [
            self.ranges.source.eq(first),
            rows_found.eq(rows),
            self.ranges.source_end.eq(self.ranges.source + rows_found),
            base.eq(origin_base),
            offset.eq(Mux(self.ranges.is_plane, products.first_row + self.ranges.plane_x, 0)),
            self.ranges.origin.eq(base + _twice_if(is_wide, offset)),
        ]

    def _host_extent(self, m: Module, opcode_is: dict[Opcode, Value]) -> tuple[Signal, Signal]:
        """Bytes that a host transfer spans; for a strided one (rows - 1) * stride + S, one bit of rows per cycle."""
        done = Signal()
        is_alternate = opcode_is[Opcode.READ_HOST_MEMORY_ALTERNATE] | opcode_is[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        rows = self._field(Opcode.READ_HOST_MEMORY, "rows")[: _rows_width(self.config)]
        extent = Signal(host_end_width(self.config))
        left = Signal(_rows_width(self.config))
        weight = Signal(host_end_width(self.config))
        # Whether a bit is left for the next cycle.
        has_more = Signal()
        m.d.sync += has_more.eq(left[1:] != 0)
        m.d.comb += done.eq(~is_alternate | ~has_more)
        with m.If(self.start):
            m.d.sync += [
                has_more.eq(1),
                left.eq(Mux(is_alternate, rows - 1, 0)),
                weight.eq(self.configuration.host_stride.stride),
                extent.eq(Mux(is_alternate, self.config.size, rows << ceil_log2(self.config.size))),
            ]
        with m.Elif(has_more):
            m.d.sync += [left.eq(left >> 1), weight.eq(weight << 1)]
            with m.If(left[0]):
                m.d.sync += extent.eq(extent + weight)
        return extent, done


def _twice_if(condition: Value, value: Value) -> Value:
    return Mux(condition, value << 1, value)
