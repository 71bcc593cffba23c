"""Commands: what the dispatcher hands to each unit, with the configuration registers that they need."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from openmxu.arch.config import Config
from openmxu.rtl.systolic_data_setup import OperandFormat

__all__ = [
    "ActivationKind",
    "OutputLayout",
    "activation_command",
    "host_command",
    "matrix_command",
    "weight_command",
]


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


def weight_command(config: Config) -> data.StructLayout:
    """Consecutive tiles of weight memory."""
    return data.StructLayout({"address": config.weight_address_width, "tiles": 24, "format": OperandFormat})


def matrix_command(config: Config) -> data.StructLayout:
    """Rows of the unified buffer times a tile to rows of the accumulators."""
    return data.StructLayout(
        {
            "unified_buffer": config.unified_buffer_address_width,
            "accumulator": config.accumulator_address_width,
            "rows": range(min(config.unified_buffer_rows, config.accumulator_rows) + 1),
            "accumulate": 1,
            "next_tile": 1,
            "format": OperandFormat,
        }
    )


class ActivationKind(enum.Enum, shape=2):
    """What the activation unit does."""

    BYTE = 0
    INT32 = 1
    LOAD_PARAMETERS = 2


class OutputLayout(data.Struct):
    """What follows the scaling: zero point and clamp, as in the OUTPUT_FORMAT register."""

    zero_point: signed(18)
    minimum: signed(18)
    maximum: signed(18)


def activation_command(config: Config) -> data.StructLayout:
    """Accumulator rows to unified buffer rows, or unified buffer rows to parameter sets.

    ``rows`` counts accumulator rows, or parameter sets to load from ``parameters`` on.
    """
    rows = max(min(config.unified_buffer_rows, config.accumulator_rows), config.parameter_sets)
    return data.StructLayout(
        {
            "kind": ActivationKind,
            "unified_buffer": config.unified_buffer_address_width,
            "accumulator": config.accumulator_address_width,
            "rows": range(rows + 1),
            "parameters": config.parameter_set_width,
            "output": OutputLayout,
        }
    )
