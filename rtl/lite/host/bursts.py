"""The one burst of a transfer without a stride."""

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import data

from openmxu.arch.config import Config, ceil_log2

__all__ = ["burst_address", "burst_beats", "first_lane"]


def first_lane(config: Config, host: Value) -> Value:
    """Place of the first row within the first beat; nothing where a row is a beat or more."""
    if config.size >= config.host_data_bytes:
        return Const(0, 0)
    return host[ceil_log2(config.size) : ceil_log2(config.host_data_bytes)]


def burst_address(config: Config, host: Value) -> Value:
    """Address of the first beat."""
    beat_bits = ceil_log2(config.host_data_bytes)
    return Cat(Const(0, beat_bits), host[beat_bits:])


def burst_beats(config: Config, command: data.View) -> Value:
    """Beats that hold any byte of the rows."""
    if config.size >= config.host_data_bytes:
        return command.rows << ceil_log2(config.size // config.host_data_bytes)
    per_beat = config.host_data_bytes // config.size
    return (command.rows + first_lane(config, command.host) + (per_beat - 1)) >> ceil_log2(per_beat)
