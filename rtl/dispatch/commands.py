"""Commands: what the dispatcher hands to each unit, with the configuration registers that they need."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from openmxu.arch import isa
from openmxu.arch.config import Config
from openmxu.arch.effects import TABLES
from openmxu.rtl.common.address_generator import walk_layout
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat

__all__ = [
    "ActivationKind",
    "ElementFormat",
    "Operand",
    "OutputFormat",
    "OutputLayout",
    "Pooling",
    "activation_command",
    "activation_start",
    "activation_walk",
    "host_command",
    "loads_weights",
    "matrix_command",
    "matrix_walk",
    "read_operands",
    "weight_command",
    "write_command",
]


def loads_weights(config: Config) -> bool:
    """Whether the core executes Load_Weights."""
    return config.features.has(isa.Opcode.LOAD_WEIGHTS)


def host_command(config: Config) -> data.StructLayout:
    """A transfer between host memory and the unified buffer: rows ``stride`` bytes apart if ``alternate``."""
    return data.StructLayout(
        {
            "host": config.host_address_width,
            "unified_buffer": config.unified_buffer_address_width,
            "rows": range(config.unified_buffer_rows + 1),
            "alternate": 1,
            "stride": 32,
        }
    )


def write_command(config: Config) -> data.StructLayout:
    """A transfer to host memory, which begins like any transfer.

    If ``to_weights``, which cores without Load_Weights do not have, the rows of a tile go to the weight FIFO instead.
    """
    fields = {name: field.shape for name, field in host_command(config)}
    return data.StructLayout({**fields, **({"to_weights": 1} if loads_weights(config) else {})})


def read_operands(format: data.View, register: data.View) -> list:
    """How the array's operands are read, from INPUT_FORMAT or WEIGHT_FORMAT to an ``OperandFormat``."""
    return [format.zero_point.eq(register.zero_point), format.is_signed.eq(register.signed)]


def weight_command(config: Config) -> data.StructLayout:
    """Consecutive tiles of weight memory; if ``wide``, low and high bytes of int16 weights in turn.

    If ``from_buffer``, which cores without Load_Weights do not have, one tile of the unified buffer instead; it may be
    ``transposed``.
    """
    loads = {"from_buffer": 1, "transposed": 1} if loads_weights(config) else {}
    return data.StructLayout(
        {"address": config.weight_address_width, "tiles": 24, "format": OperandFormat, "wide": 1, **loads}
    )


def matrix_walk(config: Config) -> data.StructLayout:
    """The rows that a MatrixMultiply or a Convolve reads, and for which rows of the accumulators."""
    return walk_layout(
        address_width=config.unified_buffer_address_width,
        most_rows=config.unified_buffer_rows,
        most_outputs=config.accumulator_rows,
        windows=False,
        target_width=config.accumulator_address_width,
    )


def matrix_command(config: Config) -> data.StructLayout:
    """Rows of the unified buffer times a tile to consecutive rows of the accumulators from the walk's ``target`` on.

    ``wide_input`` is the walk's ``wide``. With ``wide_weights`` two tiles are taken.
    """
    return data.StructLayout(
        {
            "walk": matrix_walk(config),
            "accumulate": 1,
            "next_tile": 1,
            "wide_weights": 1,
            "format": OperandFormat,
        }
    )


class ActivationKind(enum.Enum, shape=2):
    """What the activation unit does."""

    ACTIVATE = 0
    LOAD_PARAMETERS = 1
    LOAD_TABLE = 2


class OutputFormat(enum.Enum, shape=2):
    """:class:`openmxu.arch.isa.OutputFormat` in two bits."""

    BYTE = isa.OutputFormat.BYTE.value
    WORD = isa.OutputFormat.WORD.value
    INT32 = isa.OutputFormat.INT32.value


class Pooling(enum.Enum, shape=2):
    """:class:`openmxu.arch.isa.Pooling` in two bits."""

    NONE = isa.Pooling.NONE.value
    MAX = isa.Pooling.MAX.value
    AVERAGE = isa.Pooling.AVERAGE.value


class Operand(enum.Enum, shape=2):
    """:class:`openmxu.arch.isa.Operand` in two bits."""

    NONE = isa.Operand.NONE.value
    ADD = isa.Operand.ADD.value
    MULTIPLY = isa.Operand.MULTIPLY.value


class ElementFormat(data.Struct):
    """How the activation unit reads unified buffer rows: bytes or 16-bit words, minus a zero point of their type."""

    zero_point: signed(17)
    is_signed: 1
    wide: 1


class OutputLayout(data.Struct):
    """What follows the scaling: zero point and clamp, as in the OUTPUT_FORMAT register."""

    zero_point: signed(18)
    minimum: signed(18)
    maximum: signed(18)


def activation_walk(config: Config) -> data.StructLayout:
    """The rows that an Activate reads: of the accumulators or of the unified buffer."""
    return walk_layout(
        address_width=max(config.unified_buffer_address_width, config.accumulator_address_width),
        most_rows=max(config.unified_buffer_rows, config.accumulator_rows),
        most_outputs=max(config.unified_buffer_rows, config.parameter_sets),
        windows=True,
    )


def activation_command(config: Config) -> data.StructLayout:
    """Activate, or unified buffer rows to parameter sets or to a table.

    Members
    -------
    kind
        What to do. A load uses ``unified_buffer``, and for parameters ``parameters`` (the first set) and ``walk.rows``
        (the number of sets), for a table ``table_number``.
    unified_buffer
        First row written, or first row to load from.
    walk
        Positions of the source; ``walk.wide`` is that of ``source_format``, 0 for accumulators. Without pooling the
        window is 1 × 1. Each window is repeated for each byte of the result.
    from_unified_buffer, source_format
        The source is the unified buffer, read like this.
    pooling
        What becomes of a window.
    operand, operand_address, operand_format, operand_scale
        The second operand; the scale is that of ``ADD``.
    parameters, output, output_format, table, table_number
        Parameter set; zero point and clamp; size of the result; whether it is looked up in a table, and in which one.
    """
    return data.StructLayout(
        {
            "kind": ActivationKind,
            "unified_buffer": config.unified_buffer_address_width,
            "walk": activation_walk(config),
            "from_unified_buffer": 1,
            "source_format": ElementFormat,
            "pooling": Pooling,
            "operand": Operand,
            "operand_address": config.unified_buffer_address_width,
            "operand_format": ElementFormat,
            "operand_scale": 32,
            "parameters": config.parameter_set_width,
            "output": OutputLayout,
            "output_format": OutputFormat,
            "table": 1,
            "table_number": range(TABLES),
        }
    )


def activation_start(config: Config) -> data.StructLayout:
    """What the activation unit begins with; the rest of the command goes to its parts as soon as it is dispatched."""
    return data.StructLayout({"kind": ActivationKind, "walk": activation_walk(config)})
