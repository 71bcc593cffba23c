"""A bank of the unified buffer in the large memories of an iCE40."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.buffer.unified_buffer_bank import UnifiedBufferBank

__all__ = ["Ice40Bank"]

_ROWS = 1 << 14
_BITS = 16
_BLOCKS = 4
"""Memories of 16,384 × 16 bits on the only part that has them."""


class Ice40Bank(UnifiedBufferBank):
    """SB_SPRAM256KA blocks side by side, with one access per cycle; read data is valid for one cycle.

    Members
    -------
    read_enable, read_address, read_data
        The row comes in the next cycle. Never while ``write_enable`` is set.
    write_enable, write_address, write_data
        Write a row.
    """

    is_single_ported = True

    @staticmethod
    def fits(config: Config) -> bool:
        """Whether all banks of a unified buffer fit into these memories."""
        columns = -(-8 * config.size // _BITS)
        return (
            config.unified_buffer_rows // config.unified_buffer_banks <= _ROWS
            and config.unified_buffer_banks * columns <= _BLOCKS
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        address = Signal.like(self.write_address)
        data = Signal(-(-self._width // _BITS) * _BITS)
        m.d.comb += address.eq(self.read_address)
        with m.If(self.write_enable):
            m.d.comb += address.eq(self.write_address)
        m.d.comb += self.read_data.eq(data)
        for place in range(0, self._width, _BITS):
            part = self.write_data[place : place + _BITS]
            m.submodules[f"memory_{place}"] = Instance(
                "SB_SPRAM256KA",
                i_CLOCK=ClockSignal(),
                i_CHIPSELECT=Const(1),
                i_WREN=self.write_enable,
                i_MASKWREN=Const(0b1111, 4),
                i_ADDRESS=Cat(address, Const(0, ceil_log2(_ROWS) - len(address))),
                i_DATAIN=Cat(part, Const(0, _BITS - len(part))),
                i_STANDBY=Const(0),
                i_SLEEP=Const(0),
                i_POWEROFF=Const(1),  # active low
                o_DATAOUT=data[place : place + _BITS],
            )
        return m
