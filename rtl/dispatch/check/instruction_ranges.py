"""Instruction ranges: computes the rows that an instruction touches."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.arch.isa import Opcode, OutputFormat, Register
from openmxu.rtl.common.comparison import exceeds
from openmxu.rtl.dispatch.check.plane_products import PlaneProducts
from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["InstructionRanges", "ranges_layout", "source_width"]


def source_width(config: Config) -> int:
    """Bits of a row address of the accumulators or of the unified buffer, whichever has more rows."""
    return max(config.unified_buffer_address_width, config.accumulator_address_width)


def ranges_layout(config: Config) -> data.StructLayout:
    """Rows that an instruction touches, if they exist in their memory; all ends are exclusive.

    Members
    -------
    unified_buffer, unified_buffer_end
        Rows that a transfer, a load or the matrix unit reads, or that a transfer or Activate writes.
    source, source_end
        Accumulator rows, or the unified buffer rows that Activate reads instead.
    operand, operand_end
        Unified buffer rows of Activate's second operand.
    is_plane
        Whether the source is a plane.
    origin
        Row of the first output's position, wrapped like addresses; without a plane the first row.
    pitch
        Positions from one row of outputs to the next one, wrapped like addresses.
    outputs
        Rows of sums that the matrix unit makes.
    """
    row, source = config.unified_buffer_address_width, source_width(config)
    return data.StructLayout(
        {
            "unified_buffer": row,
            "unified_buffer_end": row + 1,
            "source": source,
            "source_end": source + 1,
            "operand": row,
            "operand_end": row + 1,
            "is_plane": 1,
            "origin": source,
            "pitch": source,
            "outputs": source + 1,
        }
    )


class _Rows:
    """A range of rows: its first row and its number of rows, twice as many if ``wide``.

    ``beyond`` is set if a bit above those of the memories' rows is set.
    """

    def __init__(self, m: Module, platform: object, name: str, width: int) -> None:
        self.first = Signal(width, name=f"{name}_first")
        self.count = Signal(width + 1, name=f"{name}_count", reset_less=True)
        self.wide = Signal(name=f"{name}_wide")
        self.beyond = Signal(name=f"{name}_beyond")
        # Wide enough for all sums of `first` and `count`.
        self.end = Signal(width + 3, name=f"{name}_end", reset_less=True)
        count = Cat(self.count, Const(0, 2))
        m.d.sync += self.end.eq(
            chained_sum(
                m,
                platform,
                f"{name}_sum",
                [Cat(self.first, Const(0, 3)), self.wide, count, (count << 1)[: len(count)]],
                first=lambda first, wide, count, twice: first,
                second=lambda first, wide, count, twice: (count & ~wide) | (twice & wide),
            )
        )

    def outside(self, rows: int) -> Value:
        """Whether the range exceeds a memory of ``rows`` rows."""
        return self.beyond | exceeds(self.end, rows)


class InstructionRanges(wiring.Component):
    """Finds the rows of one word; the products for a plane take some cycles more.

    Members
    -------
    word, opcode_is, configuration
        The instruction, one bit for each of the profile's instructions, the configuration registers.
    load, new_word
        Load registers from ``new_word``; the last word counts.
    start, done
        ``start`` is set in the first cycle without ``load``; ``done`` shows, from the next cycle on, that the ranges
        are valid, except for ``origin``, which follows two cycles later.
    ranges
        See :func:`ranges_layout`.
    outside_buffer, outside_accumulators
        Rows exceed the unified buffer, one bit each for ``unified_buffer``, ``source`` and ``operand``; the source's
        rows exceed the accumulators.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "word": In(isa.WORD_BITS),
                "opcode_is": In(len(config.features.formats)),
                "configuration": In(configuration_layout()),
                "load": In(1),
                "new_word": In(isa.WORD_BITS),
                "start": In(1),
                "done": Out(1),
                "ranges": Out(ranges_layout(config)),
                "outside_buffer": Out(data.StructLayout({"unified_buffer": 1, "source": 1, "operand": 1})),
                "outside_accumulators": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, ranges = self.config, self.ranges
        width = source_width(config)
        m.submodules.products = self._products = PlaneProducts(width)
        opcode_is = by_opcode(self.opcode_is, self.config)
        self._activates, self._convolves = opcode_is[Opcode.ACTIVATE], opcode_is[Opcode.CONVOLVE]
        buffer, source, operand = (_Rows(m, platform, name, width) for name in ("buffer", "source", "operand"))
        m.d.comb += [
            ranges.unified_buffer.eq(buffer.first),
            ranges.unified_buffer_end.eq(buffer.end),
            ranges.source.eq(source.first),
            ranges.source_end.eq(source.end),
            ranges.outputs.eq(source.count),
            ranges.operand.eq(operand.first),
            ranges.operand_end.eq(operand.end),
            self.outside_buffer.unified_buffer.eq(buffer.outside(config.unified_buffer_rows)),
            self.outside_buffer.source.eq(source.outside(config.unified_buffer_rows)),
            self.outside_buffer.operand.eq(operand.outside(config.unified_buffer_rows)),
            self.outside_accumulators.eq(source.outside(config.accumulator_rows)),
        ]
        self._multiply(m)
        self._count(m, buffer, source, operand)
        self._find_origin(m, platform, buffer, source)
        return m

    def _field(self, opcode: Opcode, name: str) -> Value:
        return field_of(self.word, opcode, name)

    def _multiply(self, m: Module) -> None:
        products = self._products
        plane, pooled = self.configuration.convolution_plane, self.configuration.pooling_plane
        window = self.configuration.pooling_window
        m.d.comb += [
            products.start.eq(self.start & self.ranges.is_plane),
            products.convolves.eq(self._convolves),
            products.convolution.height.eq(plane.height),
            products.convolution.width.eq(plane.width),
            products.convolution.y.eq(self._field(Opcode.CONVOLVE, "dy")),
            products.convolution.stride_y.eq(plane.stride_y),
            products.pooling.height.eq(pooled.height),
            products.pooling.width.eq(pooled.width),
            products.pooling.y.eq(-window.pad_top),
            products.pooling.stride_y.eq(window.stride_y),
            products.output_height.eq(self._field(Opcode.CONVOLVE, "height")),
            products.output_width.eq(self._field(Opcode.CONVOLVE, "width")),
            self.ranges.pitch.eq(products.pitch),
            self.done.eq(products.done),
        ]

    def _count(self, m: Module, buffer: _Rows, source: _Rows, operand: _Rows) -> None:
        """Find the first row and the number of rows of each range, from the new word and from products.

        Single bits of the opcode distinguish the instructions that touch rows; for others, ranges have no meaning.
        """
        new, products, ranges = self.new_word, self._products, self.ranges
        is_transfer_or_matrix, activates = new[4], new[6]
        is_matrix, acts = new[4] & new[5], ~new[4] & ~new[6]
        output = field_of(new, Opcode.ACTIVATE, "output")
        results = field_of(new, Opcode.ACTIVATE, "rows")
        multiplied = field_of(new, Opcode.MATRIX_MULTIPLY, "rows")
        loads_table = field_of(new, Opcode.SET_CONFIGURATION, "register")[0]
        # The table has no count: those bits are zero.
        loaded = Cat(Const(0, ceil_log2(PARAMETER_ROWS)), register_field(new, Register.LOAD_PARAMETERS, "count")) | Mux(
            loads_table, table_rows(self.config.size), 0
        )
        written = Mux(output[1], results << OutputFormat.INT32.value, results)
        width = len(buffer.count)
        row = self.config.unified_buffer_address_width

        def parts(value: Value, width: int) -> Value:
            """The lower bits, and whether a bit above them is set."""
            return Cat(value[:width], Const(0, max(0, width - len(value))), value[width:].any())

        transferred = field_of(new, Opcode.READ_HOST_MEMORY, "rows")
        if loads_weights(self.config):
            # Of the instructions that transfer rows, this bit is set in Load_Weights alone, which has no count.
            transferred = transferred | Mux(new[2], self.config.size, 0)
        counts = [parts(value, width) for value in (loaded, transferred)]
        counts += [parts(value, width) for value in (written, multiplied)]
        first = Mux(
            acts,
            parts(register_field(new, Register.LOAD_TABLE, "unified_buffer"), row),
            parts(field_of(new, Opcode.MATRIX_MULTIPLY, "unified_buffer"), row),
        )
        # A product's bits have a flag of their own, because both flags come late.
        product = products.product[:width]
        product_beyond = ~self.load & products.product[width:].any()
        buffer_beyond, count_beyond, positions_beyond, source_beyond, outputs_beyond, results_beyond = (
            Signal(name=f"{name}_is_beyond", reset_less=True)
            for name in ("first", "count", "positions", "rows", "outputs", "results")
        )
        with m.If(self.load):
            m.d.sync += [
                Cat(buffer.first[:row], buffer_beyond).eq(first),
                buffer.wide.eq(Mux(activates, output[0], is_matrix & field_of(new, Opcode.CONVOLVE, "wide_input"))),
                ranges.is_plane.eq(Mux(activates, field_of(new, Opcode.ACTIVATE, "pooling") != 0, is_matrix & new[0])),
                results_beyond.eq(counts[2][-1]),
            ]
        with m.If(self.load | (products.has_positions & self._convolves)):
            chosen = Array(counts)[Cat(is_transfer_or_matrix, new[5] | new[6])]
            m.d.sync += [
                buffer.count.eq(Mux(self.load, chosen[:-1], product)),
                *(count_beyond.eq(self.load & chosen[-1]), positions_beyond.eq(product_beyond)),
            ]
        with m.If(self.load | Mux(self._convolves, products.has_outputs, products.has_positions)):
            chosen = Mux(activates, parts(results, width), counts[3])
            m.d.sync += [
                source.count.eq(Mux(self.load, chosen[:-1], product)),
                *(source_beyond.eq(self.load & chosen[-1]), outputs_beyond.eq(product_beyond)),
            ]

        # The field of an accumulator row is the lower bits of the field of a source.
        from_buffer = self._field(Opcode.ACTIVATE, "from_unified_buffer")
        accumulator = self._field(Opcode.MATRIX_MULTIPLY, "accumulator")
        rest = self._field(Opcode.ACTIVATE, "source")[len(accumulator) :]
        place = Cat(accumulator, Mux(self._activates, rest, 0))
        operand_place = self.configuration.operand_address.unified_buffer
        m.d.comb += [
            buffer.beyond.eq(buffer_beyond | count_beyond | positions_beyond),
            source.first.eq(place),
            source.wide.eq(self._activates & from_buffer & self.configuration.source_format.wide),
            source.beyond.eq(source_beyond | outputs_beyond | place[len(source.first) :].any()),
            operand.first.eq(operand_place),
            operand.wide.eq(self.configuration.operand_format.wide),
            operand.count.eq(self._field(Opcode.ACTIVATE, "rows")),
            operand.beyond.eq(results_beyond | operand_place[len(operand.first) :].any()),
        ]

    def _find_origin(self, m: Module, platform: object, buffer: _Rows, source: _Rows) -> None:
        """Compute the row of the first position: the first row of the plane plus the rows between."""
        products, ranges = self._products, self.ranges
        width = len(ranges.origin)
        x = self._field(Opcode.CONVOLVE, "dx")[:width], (-self.configuration.pooling_window.pad_left)[:width]
        dx, minus_pad = (Cat(value, value[-1].replicate(width - len(value))) for value in x)
        offset = Signal(width, reset_less=True)
        m.d.sync += offset.eq(
            chained_sum(
                m,
                platform,
                "first_position",
                [products.first_row, self._convolves, dx, minus_pad],
                first=lambda row, convolves, dx, minus_pad: row,
                second=lambda row, convolves, dx, minus_pad: (dx & convolves) | (minus_pad & ~convolves),
            )
        )
        with m.If(~ranges.is_plane):
            m.d.sync += offset.eq(0)
        m.d.sync += ranges.origin.eq(
            chained_sum(
                m,
                platform,
                "origin",
                [
                    Mux(self._activates, source.first, buffer.first),
                    Mux(self._activates, source.wide, buffer.wide),
                    offset,
                    (offset << 1)[:width],
                ],
                first=lambda first, wide, offset, twice: first,
                second=lambda first, wide, offset, twice: (offset & ~wide) | (twice & wide),
            )
        )
