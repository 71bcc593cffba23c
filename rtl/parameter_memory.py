"""Parameter memory: bias and scale of every column, in sets."""

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config

__all__ = ["ParameterMemory", "Parameters"]


class Parameters(data.Struct):
    """Of one column: int32 bias and float32 scale."""

    bias: signed(32)
    scale: 32


class ParameterMemory(wiring.Component):
    """Sets of S parameters, as S/L groups of L: value l of group j belongs to column l·S/L + j.

    A group read while it is written gives either value; the activation unit does not compute while it loads.

    Members
    -------
    read_address
        Set times S/L plus group.
    read_data
        L parameters, ``read_latency`` cycles later.
    write_enable, write_address, write_byte, write_data
        Write byte ``write_byte`` of each parameter of a group.
    """

    read_latency = 2
    """Cycles from address to data; the second one is a register that keeps block RAM and adder apart."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._depth = config.parameter_sets * config.column_groups
        address = range(self._depth)
        super().__init__(
            {
                "read_address": In(address),
                "read_data": Out(data.ArrayLayout(Parameters, config.activation_lanes)),
                "write_enable": In(1),
                "write_address": In(address),
                "write_byte": In(3),
                "write_data": In(data.ArrayLayout(8, config.activation_lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self._config.activation_lanes
        m.submodules.memory = memory = Memory(shape=64 * lanes, depth=self._depth, init=[])
        read = memory.read_port()
        write = memory.write_port(granularity=8)
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(self.read_address),
            write.addr.eq(self.write_address),
        ]
        for lane in range(lanes):
            byte_enable = write.en.word_select(lane, 8)
            with m.If(self.write_enable):
                m.d.comb += byte_enable.eq(1 << self.write_byte)
            m.d.comb += write.data.word_select(lane, 64).eq(self.write_data[lane].replicate(8))
        output = Signal(64 * lanes, reset_less=True)
        m.d.sync += output.eq(read.data)
        m.d.comb += Value.cast(self.read_data).eq(output)
        return m
