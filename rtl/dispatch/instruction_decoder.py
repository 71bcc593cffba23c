"""Instruction decoder: from a checked word and the configuration registers to commands for the units."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import WORD_BITS, Opcode, Operand, Register
from openmxu.rtl.dispatch.check.instruction_ranges import ranges_layout
from openmxu.rtl.dispatch.commands import (
    ActivationKind,
    activation_command,
    loads_weights,
    matrix_command,
    read_operands,
    weight_command,
    write_command,
)
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of, register_field
from openmxu.rtl.dispatch.scoreboard import QueuedUnit, access_layout

__all__ = ["InstructionDecoder"]

_QUEUED = (
    Opcode.READ_HOST_MEMORY,
    Opcode.READ_HOST_MEMORY_ALTERNATE,
    Opcode.WRITE_HOST_MEMORY,
    Opcode.WRITE_HOST_MEMORY_ALTERNATE,
    Opcode.LOAD_WEIGHTS,
    Opcode.MATRIX_MULTIPLY,
    Opcode.CONVOLVE,
    Opcode.ACTIVATE,
)
"""Instructions that always go to a unit with a queue; a Set_Configuration that loads does as well."""


class InstructionDecoder(wiring.Component):
    """What the units are told, and what the scoreboard must know, narrowed to widths that legal values fit.

    The word stands still during its check, three cycles at least: what is decoded from it goes through registers.

    Members
    -------
    word, opcode_is, configuration, ranges, host, host_end
        The instruction, one bit for each of the profile's instructions, the configuration registers, and what the
        instruction touches: rows, and bytes of host memory.
    loads_parameters, loads_table
        It loads parameters, or a table.
    is_queued, unit
        Whether a unit with a queue executes the instruction, and which one; a cycle later.
    access
        For the scoreboard.
    transfer, multiplication, activation_work, weights
        The command, if the instruction is for the host reader or writer, the matrix unit, the activation unit, or the
        weight fetcher.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "word": In(WORD_BITS),
                "opcode_is": In(len(config.features.formats)),
                "loads_parameters": In(1),
                "loads_table": In(1),
                "configuration": In(configuration_layout()),
                "ranges": In(ranges_layout(config)),
                "host": In(config.host_address_width),
                "host_end": In(config.host_address_width + 1),
                "is_queued": Out(1),
                "unit": Out(QueuedUnit),
                "access": Out(access_layout(config)),
                "transfer": Out(write_command(config)),
                "multiplication": Out(matrix_command(config)),
                "activation_work": Out(activation_command(config)),
                "weights": Out(weight_command(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        is_ = by_opcode(self.opcode_is, self._config)
        is_load = self.loads_parameters | self.loads_table
        m.d.sync += self.is_queued.eq(is_load | Cat(is_[opcode] for opcode in _QUEUED if opcode in is_).any())
        self._describe_access(m, is_, is_load)
        self._describe_transfers(m, is_)
        self._describe_multiplication(m)
        self._describe_activation(m, is_load)
        return m

    def _describe_access(self, m: Module, is_: dict, is_load: Value) -> None:
        """What the instruction touches, narrowed to widths that legal values fit."""
        word, ranges = self.word, self.ranges
        is_write = is_[Opcode.WRITE_HOST_MEMORY] | is_[Opcode.WRITE_HOST_MEMORY_ALTERNATE]
        if Opcode.LOAD_WEIGHTS in is_:
            is_write = is_write | is_[Opcode.LOAD_WEIGHTS]
        is_matrix = is_[Opcode.MATRIX_MULTIPLY] | is_[Opcode.CONVOLVE]
        is_activate = is_[Opcode.ACTIVATE]

        with m.If(is_activate | is_load):
            m.d.sync += self.unit.eq(QueuedUnit.ACTIVATION)
        with m.Elif(is_matrix):
            m.d.sync += self.unit.eq(QueuedUnit.MATRIX)
        with m.Elif(is_write):
            m.d.sync += self.unit.eq(QueuedUnit.HOST_WRITE)
        with m.Else():
            m.d.sync += self.unit.eq(QueuedUnit.HOST_READ)

        access = self.access
        from_unified_buffer = field_of(word, Opcode.ACTIVATE, "from_unified_buffer")
        m.d.sync += [
            access.writes.eq(~(is_write | is_matrix | is_load)),
            access.uses_accumulators.eq(is_matrix | (is_activate & ~from_unified_buffer)),
            access.reads_source.eq(is_activate & from_unified_buffer),
            access.reads_operand.eq(is_activate & (field_of(word, Opcode.ACTIVATE, "operand") != Operand.NONE)),
        ]
        for name in ("unified_buffer", "source", "operand"):
            m.d.comb += [access[name].eq(ranges[name]), access[f"{name}_end"].eq(ranges[f"{name}_end"])]
        m.d.comb += [access.host.eq(self.host), access.host_end.eq(self.host_end)]

    def _describe_transfers(self, m: Module, is_: dict) -> None:
        """The commands for host transfers and for the weight fetcher."""
        word, ranges, configuration = self.word, self.ranges, self.configuration
        transfer, weights = self.transfer, self.weights
        low = ceil_log2(self._config.weight_alignment)
        m.d.comb += [
            transfer.host.eq(self.host),
            transfer.unified_buffer.eq(ranges.unified_buffer),
            transfer.rows.eq(field_of(word, Opcode.READ_HOST_MEMORY, "rows")),
            transfer.alternate.eq(is_[Opcode.READ_HOST_MEMORY_ALTERNATE] | is_[Opcode.WRITE_HOST_MEMORY_ALTERNATE]),
            transfer.stride.eq(configuration.host_stride.stride),
            # Lower bits than those of a legal address are zero.
            weights.address.eq(Cat(Const(0, low), field_of(word, Opcode.READ_WEIGHTS, "weights")[low:])),
            weights.wide.eq(configuration.weight_format.wide),
            *read_operands(weights.format, configuration.weight_format),
        ]
        tiles = field_of(word, Opcode.READ_WEIGHTS, "tiles")
        if not loads_weights(self._config):
            m.d.comb += weights.tiles.eq(tiles)
            return
        loads = is_[Opcode.LOAD_WEIGHTS]
        m.d.sync += weights.tiles.eq(Mux(loads, 1, tiles))
        m.d.comb += [
            transfer.to_weights.eq(loads),
            weights.from_buffer.eq(loads),
            weights.transposed.eq(field_of(word, Opcode.LOAD_WEIGHTS, "transposed")),
        ]
        with m.If(loads):
            m.d.comb += transfer.rows.eq(self._config.size)

    def _describe_multiplication(self, m: Module) -> None:
        """The command for the matrix unit; MatrixMultiply and Convolve have what they share at the same places."""
        word, ranges, configuration = self.word, self.ranges, self.configuration
        multiplication, plane = self.multiplication, configuration.convolution_plane
        _walk_plane(m, multiplication.walk, ranges, plane)
        m.d.comb += [
            multiplication.walk.y.eq(field_of(word, Opcode.CONVOLVE, "dy")),
            multiplication.walk.x.eq(field_of(word, Opcode.CONVOLVE, "dx")),
            multiplication.walk.rows.eq(ranges.outputs),
            multiplication.walk.wide.eq(field_of(word, Opcode.CONVOLVE, "wide_input")),
            multiplication.walk.width.eq(field_of(word, Opcode.CONVOLVE, "width")),
            multiplication.walk.target.eq(ranges.source),
            multiplication.accumulate.eq(field_of(word, Opcode.CONVOLVE, "accumulate")),
            multiplication.next_tile.eq(field_of(word, Opcode.CONVOLVE, "next_tile")),
            multiplication.wide_weights.eq(field_of(word, Opcode.CONVOLVE, "wide_weights")),
            *read_operands(multiplication.format, configuration.input_format),
        ]

    def _describe_activation(self, m: Module, is_load: Value) -> None:
        """The command for the activation unit."""
        word, ranges, configuration = self.word, self.ranges, self.configuration
        work, window = self.activation_work, configuration.pooling_window
        from_unified_buffer = field_of(word, Opcode.ACTIVATE, "from_unified_buffer")
        output = field_of(word, Opcode.ACTIVATE, "output")
        _walk_plane(m, work.walk, ranges, window, configuration.pooling_plane)
        # Rows of one bank of the accumulators come first, so that the matrix unit, which goes from bank to bank, holds
        # up none but the first: the unit takes an even number of cycles for each.
        by_parity = Signal()
        if self._config.column_groups % 2 == 0:
            one_by_one = field_of(word, Opcode.ACTIVATE, "operand") == Operand.NONE
            m.d.comb += by_parity.eq(
                ~ranges.is_plane & ~from_unified_buffer & one_by_one & (output == isa.OutputFormat.BYTE)
            )
        with m.If(by_parity):
            m.d.sync += work.walk.stride_x.eq(2)
        rows = field_of(word, Opcode.ACTIVATE, "rows")
        m.d.sync += [
            work.walk.by_parity.eq(by_parity),
            work.walk.width.eq(Mux(ranges.is_plane, configuration.pooling_plane.output_width, (rows >> 1) + rows[0])),
            work.walk.window_height.eq(Mux(ranges.is_plane, window.height, 1)),
            work.walk.window_width.eq(Mux(ranges.is_plane, window.width, 1)),
        ]
        m.d.comb += [
            work.unified_buffer.eq(ranges.unified_buffer),
            work.walk.y.eq(-window.pad_top),
            work.walk.x.eq(-window.pad_left),
            work.walk.wide.eq(from_unified_buffer & configuration.source_format.wide),
            work.from_unified_buffer.eq(from_unified_buffer),
            work.pooling.eq(field_of(word, Opcode.ACTIVATE, "pooling")),
            work.operand.eq(field_of(word, Opcode.ACTIVATE, "operand")),
            work.operand_address.eq(ranges.operand),
            work.operand_scale.eq(configuration.operand_scale.scale),
            work.output.eq(configuration.output_format),
            work.output_format.eq(output),
            work.table.eq(field_of(word, Opcode.ACTIVATE, "table")),
            # LOAD_TABLE has its number at the same bits.
            work.table_number.eq(field_of(word, Opcode.ACTIVATE, "table_number")),
        ]
        for format, register in (
            (work.source_format, configuration.source_format),
            (work.operand_format, configuration.operand_format),
        ):
            m.d.comb += [
                format.zero_point.eq(register.zero_point),
                format.is_signed.eq(register.signed),
                format.wide.eq(register.wide),
            ]
        # One pass over each window for each byte of a result.
        with m.Switch(output):
            with m.Case(isa.OutputFormat.WORD):
                m.d.comb += work.walk.repeats.eq(1)
            with m.Case(isa.OutputFormat.INT32):
                m.d.comb += work.walk.repeats.eq(3)
        with m.If(is_load):
            m.d.comb += [
                work.kind.eq(Mux(self.loads_table, ActivationKind.LOAD_TABLE, ActivationKind.LOAD_PARAMETERS)),
                work.parameters.eq(register_field(word, Register.LOAD_PARAMETERS, "first")),
                work.walk.rows.eq(register_field(word, Register.LOAD_PARAMETERS, "count")),
            ]
        with m.Else():
            m.d.comb += [
                work.kind.eq(ActivationKind.ACTIVATE),
                work.parameters.eq(field_of(word, Opcode.ACTIVATE, "parameters")),
                work.walk.rows.eq(field_of(word, Opcode.ACTIVATE, "rows")),
            ]


def _walk_plane(
    m: Module, walk: data.View, ranges: data.View, strides: data.View, plane: data.View | None = None
) -> None:
    """Where a walk begins and how it goes on; ``strides`` stand in the register of the plane, or in another one.

    Members that are constant without a plane come from registers, whose reset depends on that alone. Without them,
    synthesis resets the registers of the queue, in time with the handshake.
    """
    plane = strides if plane is None else plane
    m.d.sync += walk.stride_x.eq(Mux(ranges.is_plane, strides.stride_x, 1))
    m.d.comb += [
        walk.address.eq(ranges.origin),
        walk.is_plane.eq(ranges.is_plane),
        walk.stride_y.eq(strides.stride_y),
        walk.pitch.eq(ranges.pitch),
        walk.plane_height.eq(plane.height),
        walk.plane_width.eq(plane.width),
    ]
