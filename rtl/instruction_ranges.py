"""Instruction ranges: which rows and bytes an instruction touches."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import FORMATS, Opcode, OutputFormat, Pooling, Register
from openmxu.arch.legality import PARAMETER_ROWS, table_rows
from openmxu.rtl.configuration_registers import configuration_layout
from openmxu.rtl.instruction_fields import field_of, register_field
from openmxu.rtl.plane_products import PlaneProducts

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
        Bytes of host memory.
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
            "host": 64,
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
    start, done
        The word is new; its ranges are there from the cycle after ``done`` on, ``origin`` one cycle later.
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
        is_pooled = opcode_is[Opcode.ACTIVATE] & (self._field(Opcode.ACTIVATE, "pooling") != Pooling.NONE)
        extent, extent_done = self._host_extent(m, opcode_is)
        m.d.comb += [
            self.ranges.is_plane.eq(is_convolve | is_pooled),
            products.start.eq(self.start & self.ranges.is_plane),
            self.ranges.pitch.eq(products.pitch),
            self.ranges.outputs.eq(
                Mux(is_convolve, products.outputs, self._field(Opcode.MATRIX_MULTIPLY, "rows")),
            ),
            self.done.eq(~self.start & products.done & extent_done),
        ]
        self._connect_plane(m, products, is_convolve)
        self._unified_buffer_rows(m, opcode_is, products)
        self._source_rows(m, opcode_is, products, is_pooled)

        operand = self.configuration.operand_address.unified_buffer
        operand_rows = _twice_if(self.configuration.operand_format.wide, self._field(Opcode.ACTIVATE, "rows"))
        host = self._field(Opcode.READ_HOST_MEMORY, "host")
        m.d.sync += [
            self.ranges.operand.eq(operand),
            self.ranges.operand_end.eq(operand + operand_rows),
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

    def _unified_buffer_rows(self, m: Module, opcode_is: dict[Opcode, Value], products: PlaneProducts) -> None:
        first, rows = Signal(24), Signal(35)
        m.d.comb += first.eq(self._field(Opcode.MATRIX_MULTIPLY, "unified_buffer"))
        with m.If(opcode_is[Opcode.MATRIX_MULTIPLY]):
            is_wide = self._field(Opcode.MATRIX_MULTIPLY, "wide_input")
            m.d.comb += rows.eq(_twice_if(is_wide, self._field(Opcode.MATRIX_MULTIPLY, "rows")))
        with m.Elif(opcode_is[Opcode.CONVOLVE]):
            m.d.comb += rows.eq(_twice_if(self._field(Opcode.CONVOLVE, "wide_input"), products.positions))
        with m.Elif(opcode_is[Opcode.ACTIVATE]):
            results = self._field(Opcode.ACTIVATE, "rows")
            with m.Switch(self._field(Opcode.ACTIVATE, "output")):
                with m.Case(OutputFormat.INT32):
                    m.d.comb += rows.eq(results << 2)
                with m.Case(OutputFormat.WORD):
                    m.d.comb += rows.eq(results << 1)
                with m.Default():
                    m.d.comb += rows.eq(results)
        with m.Elif(opcode_is[Opcode.SET_CONFIGURATION]):
            # Both loads have the address at the same place.
            m.d.comb += first.eq(register_field(self.word, Register.LOAD_TABLE, "unified_buffer"))
            with m.If(self._field(Opcode.SET_CONFIGURATION, "register") == Register.LOAD_TABLE):
                m.d.comb += rows.eq(table_rows(self.config.size))
            with m.Else():
                count = register_field(self.word, Register.LOAD_PARAMETERS, "count")
                m.d.comb += rows.eq(count << ceil_log2(PARAMETER_ROWS))
        with m.Else():
            m.d.comb += rows.eq(self._field(Opcode.READ_HOST_MEMORY, "rows"))
        m.d.sync += [self.ranges.unified_buffer.eq(first), self.ranges.unified_buffer_end.eq(first + rows)]

    def _source_rows(
        self, m: Module, opcode_is: dict[Opcode, Value], products: PlaneProducts, is_pooled: Value
    ) -> None:
        first, rows = Signal(24), Signal(33)
        origin_base = Signal(24)
        is_wide = Signal()
        with m.If(opcode_is[Opcode.ACTIVATE]):
            results = self._field(Opcode.ACTIVATE, "rows")
            m.d.comb += [
                first.eq(self._field(Opcode.ACTIVATE, "source")),
                is_wide.eq(self._field(Opcode.ACTIVATE, "from_unified_buffer") & self.configuration.source_format.wide),
                rows.eq(_twice_if(is_wide, Mux(is_pooled, products.positions, results))),
                origin_base.eq(first),
            ]
        with m.Else():
            m.d.comb += [
                first.eq(self._field(Opcode.MATRIX_MULTIPLY, "accumulator")),
                is_wide.eq(self._field(Opcode.MATRIX_MULTIPLY, "wide_input")),
                rows.eq(self.ranges.outputs),
                origin_base.eq(self._field(Opcode.MATRIX_MULTIPLY, "unified_buffer")),
            ]
        offset = Signal(source_width(self.config), reset_less=True)
        m.d.sync += [
            self.ranges.source.eq(first),
            self.ranges.source_end.eq(first + rows),
            offset.eq(Mux(self.ranges.is_plane, products.first_row + self.ranges.plane_x, 0)),
            self.ranges.origin.eq(origin_base + _twice_if(is_wide, offset)),
        ]

    def _host_extent(self, m: Module, opcode_is: dict[Opcode, Value]) -> tuple[Signal, Signal]:
        """Bytes that a host transfer spans; for a strided one (rows - 1) * stride + S, one bit of rows per cycle."""
        done = Signal()
        is_alternate = opcode_is[Opcode.READ_HOST_MEMORY_ALTERNATE] | opcode_is[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        rows = self._field(Opcode.READ_HOST_MEMORY, "rows")[: _rows_width(self.config)]
        extent = Signal(host_end_width(self.config))
        left = Signal(_rows_width(self.config))
        weight = Signal(host_end_width(self.config))
        m.d.comb += done.eq(~is_alternate | (left == 0))
        with m.If(self.start):
            m.d.sync += [
                left.eq(rows - 1),
                weight.eq(self.configuration.host_stride.stride),
                extent.eq(Mux(is_alternate, self.config.size, rows << ceil_log2(self.config.size))),
            ]
        with m.Elif(~done):
            m.d.sync += [left.eq(left >> 1), weight.eq(weight << 1)]
            with m.If(left[0]):
                m.d.sync += extent.eq(extent + weight)
        return extent, done


def _twice_if(condition: Value, value: Value) -> Value:
    return Mux(condition, value << 1, value)
