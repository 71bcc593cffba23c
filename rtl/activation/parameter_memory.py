"""Parameter memory: bias and scale of every column, in sets."""

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config

__all__ = ["ParameterMemory", "parameter_write_layout"]

_VALUE_BYTES = 4
"""Bytes of a bias, and of a scale."""


def parameter_write_layout(config: Config) -> data.StructLayout:
    """A write of byte ``byte`` of each parameter of a group: 0 to 3 of the biases, 4 to 7 of the scales."""
    return data.StructLayout(
        {
            "enable": 1,
            "address": range(config.parameter_sets * config.column_groups),
            "byte": range(2 * _VALUE_BYTES),
            "data": data.ArrayLayout(8, config.activation_lanes),
        }
    )


class ParameterMemory(wiring.Component):
    """Sets of S parameters, as S/L groups of L: value l of group j belongs to column l·S/L + j.

    Biases and scales are read separately, because a lane needs the scale many cycles after the bias. A group read while
    it is written gives either value; the activation unit does not compute while it loads.

    Members
    -------
    bias_address, scale_address
        Set times S/L plus group.
    biases, scales
        L int32 biases and L float32 scales as bits, ``read_latency`` cycles after their address.
    write
        See :func:`parameter_write_layout`.
    """

    read_latency = 2
    """Cycles from address to data; the second one is a register that keeps block RAM and adder apart."""

    def __init__(self, config: Config) -> None:
        self._lanes = config.activation_lanes
        self._depth = config.parameter_sets * config.column_groups
        super().__init__(
            {
                "bias_address": In(range(self._depth)),
                "biases": Out(data.ArrayLayout(signed(32), self._lanes)),
                "scale_address": In(range(self._depth)),
                "scales": Out(data.ArrayLayout(32, self._lanes)),
                "write": In(parameter_write_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, first_byte, address, output in (
            ("bias", 0, self.bias_address, self.biases),
            ("scale", _VALUE_BYTES, self.scale_address, self.scales),
        ):
            memory = Memory(shape=8 * _VALUE_BYTES * self._lanes, depth=self._depth, init=[])
            m.submodules[name] = memory
            read = memory.read_port()
            write = memory.write_port(granularity=8)
            values = Signal(output.shape(), name=f"{name}_output", reset_less=True)
            m.d.comb += [
                read.en.eq(1),
                read.addr.eq(address),
                write.addr.eq(self.write.address),
                output.eq(values),
            ]
            m.d.sync += Value.cast(values).eq(read.data)
            for lane in range(self._lanes):
                with m.If(self.write.enable & (self.write.byte[2] == first_byte // _VALUE_BYTES)):
                    m.d.comb += write.en.word_select(lane, _VALUE_BYTES).eq(1 << self.write.byte[:2])
                m.d.comb += write.data.word_select(lane, 8 * _VALUE_BYTES).eq(
                    self.write.data[lane].replicate(_VALUE_BYTES)
                )
        return m
